import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import { WritError } from '../../../../src/core/errors.js';
import type { FleetSummary } from '../../../../src/core/fleet/answers.js';
import { createSummaryEvents } from '../../../../src/fleet/http/summary-events.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

type Reply = Parameters<ReturnType<typeof createSummaryEvents>['follow']>[0];
const viewer = { role: 'view', who: 'token a', again: async () => undefined } as const;

function fakeReply() {
  const written: string[] = [];
  const raw = Object.assign(new EventEmitter(), {
    ...{ writableLength: 0, writableEnded: false, writeHead: () => undefined },
    end: () => {
      raw.writableEnded = true;
    },
    write: (text: string) => written.push(text),
  });
  return { reply: { raw, hijack: () => undefined } as unknown as Reply, raw, written };
}

describe('the stream of the summary', () => {
  it('has a bound on its followers: FLEET_OVERLOADED, until one leaves', () => {
    const summary = async () => ({}) as FleetSummary;
    const events = createSummaryEvents({ summary, clock: fakeClock(), log: silentLog() });
    const all = Array.from({ length: 200 }, fakeReply);
    for (const [at, { reply }] of all.entries()) events.follow(reply, { ...viewer, who: `token ${at % 4}` });
    const other = { ...viewer, who: 'token other' };
    throwsCode('FLEET_OVERLOADED', () => events.follow(fakeReply().reply, other));
    all[0]?.raw.emit('close');
    events.follow(fakeReply().reply, other);
    events.close();
  });

  const bounds = [
    ['credential', 50, (at: number) => ({ who: 'token a', address: `192.0.2.${at}` })],
    ['address', 100, (at: number) => ({ who: `token ${at}`, address: '192.0.2.1' })],
  ] as const;
  for (const [of, most, follower] of bounds) {
    it(`has a bound for each ${of}, which keeps no other one out`, () => {
      const summary = async () => ({}) as FleetSummary;
      const events = createSummaryEvents({ summary, clock: fakeClock(), log: silentLog() });
      for (let at = 0; at < most; at += 1) events.follow(fakeReply().reply, { ...viewer, ...follower(at) });
      throwsCode('FLEET_OVERLOADED', () =>
        events.follow(fakeReply().reply, { ...viewer, ...follower(most) }),
      );
      events.follow(fakeReply().reply, { ...viewer, who: 'token b', address: '198.51.100.1' });
      events.close();
    });
  }

  it('bounds no address where a proxy names people', () => {
    const summary = async () => ({}) as FleetSummary;
    const events = createSummaryEvents({ summary, clock: fakeClock(), log: silentLog() });
    for (let at = 0; at < 150; at += 1) events.follow(fakeReply().reply, { ...viewer, who: `person ${at}` });
    events.close();
  });

  it('runs one query a second for all followers, and sends no answer that only became older', async () => {
    const clock = fakeClock();
    let queries = 0;
    const summary = async () => ({ atMs: ++queries, countedAtMs: queries, sentence: 'same' }) as FleetSummary;
    const events = createSummaryEvents({ summary, clock, log: silentLog() });
    const [one, two] = [fakeReply(), fakeReply()];
    for (const { reply } of [one, two]) events.follow(reply, viewer);
    for (let at = 0; at < 5; at++) await clock.advance(1000);
    assert.ok(queries >= 5 && queries <= 7, `${queries} queries`);
    assert.equal(one.written.filter((text) => text.startsWith('event: summary')).length, 1);
    events.close();
  });

  for (const [code, isEnded] of [
    ['FLEET_TOKEN_REFUSED', true],
    ['FLEET_FORBIDDEN', true],
    ['FLEET_STORE_UNREACHABLE', false],
    ['FLEET_REFUSED_OFTEN', false],
  ] as const)
    it(`sends nothing more from ${code} on, and ${isEnded ? 'ends' : 'goes on when that is over'}`, async () => {
      const clock = fakeClock();
      let queries = 0;
      const summary = async () => ({ sentence: `${++queries}` }) as FleetSummary;
      const events = createSummaryEvents({ summary, clock, log: silentLog() });
      const { reply, raw, written } = fakeReply();
      let failing = false;
      const again = async (): Promise<void> => {
        if (failing) throw new WritError(code, 'not now');
      };
      events.follow(reply, { ...viewer, again });
      await clock.advance(1000);
      failing = true;
      await clock.advance(1000);
      const before = written.length;
      await clock.advance(1000);
      failing = false;
      assert.equal(written.length, before);
      await clock.advance(2000);
      assert.deepEqual([raw.writableEnded, written.length > before], [isEnded, !isEnded]);
      events.close();
    });
});
