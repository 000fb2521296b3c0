import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createStatusFeed, maxWatchers, type StatusFeed } from '../../../../src/agent/report/status-feed.js';
import type { ControlAnswer, StatusReport } from '../../../../src/core/protocol/control-protocol.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { until } from '../../../kit/assert/until.js';
import { statusReport } from '../../../kit/cli/status-reports.js';
import { type FakeClock, fakeClock } from '../../../kit/clock/fake-clock.js';

interface Site {
  readonly clock: FakeClock;
  readonly feed: StatusFeed;
  /** Changes the status. */
  readonly change: (generation: number) => void;
}

function site(): Site {
  const clock = fakeClock();
  let report = statusReport({ generation: 1 });
  const feed = createStatusFeed({ clock, now: () => report });
  const change = (generation: number): void => {
    report = statusReport({ generation });
    feed.observer.onStatus?.(report);
  };
  return { clock, feed, change };
}

interface Watch {
  readonly generations: (number | undefined)[];
  readonly ended: Promise<void>;
  hangUp(): void;
}

function watch(feed: StatusFeed, read: () => Promise<void> = async () => undefined): Watch {
  const generations: (number | undefined)[] = [];
  const gone = new AbortController();
  const send = (answer: ControlAnswer): Promise<void> => {
    generations.push((answer as StatusReport).generation);
    return read();
  };
  return { generations, ended: feed.watch({ send, gone: gone.signal }), hangUp: () => gone.abort() };
}

describe('the status feed', () => {
  it('sends the status at once and at each change', async () => {
    const { feed, change, clock } = site();
    const { generations, hangUp, ended } = watch(feed);
    await until(() => clock.sleeping() === 1);
    assert.deepEqual(generations, [1]);
    change(2);
    await until(() => generations.length === 2);
    assert.deepEqual(generations, [1, 2]);
    hangUp();
    await ended;
  });

  it('sends it again after ten seconds without a change', async () => {
    const { feed, clock } = site();
    const { generations, hangUp, ended } = watch(feed);
    await until(() => clock.sleeping() === 1);
    await clock.advance(9999);
    assert.equal(generations.length, 1);
    await clock.advance(1);
    assert.equal(generations.length, 2);
    hangUp();
    await ended;
  });

  it('sends only the newest status to a slow watcher, without a queue', async () => {
    const { feed, change } = site();
    let readOn = (): void => undefined;
    const reading = new Promise<void>((resolve) => {
      readOn = resolve;
    });
    const { generations, hangUp, ended } = watch(feed, () => reading);
    for (const generation of [2, 3, 4]) change(generation);
    readOn();
    await until(() => generations.length === 2);
    assert.deepEqual(generations, [1, 4]);
    hangUp();
    await ended;
  });

  it('ends with a last status when the agent does', async () => {
    const { feed, clock } = site();
    const { generations, ended } = watch(feed);
    await until(() => clock.sleeping() === 1);
    feed.observer.onState?.('shutdown');
    await ended;
    assert.deepEqual(generations, [1, 1]);
  });

  it('rejects a watcher above the limit, and accepts one after another leaves', async () => {
    const { feed } = site();
    const watches = Array.from({ length: maxWatchers }, () => watch(feed));
    await rejectsCode('AGENT_BUSY', watch(feed).ended);
    watches[0]?.hangUp();
    await watches[0]?.ended;
    const late = watch(feed);
    assert.deepEqual(late.generations, [1]);
    for (const one of [...watches, late]) one.hangUp();
    await Promise.all([...watches, late].map((one) => one.ended));
  });
});
