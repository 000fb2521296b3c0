import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createEventsFile, maxEventsBytes } from '../../../../src/agent/report/events.js';
import type { AgentObserver } from '../../../../src/agent/report/observer.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { type LogLines, logLines } from '../../../kit/assert/log-lines.js';
import { statusReport } from '../../../kit/cli/status-reports.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

interface Site {
  readonly observer: AgentObserver;
  readonly log: LogLines;
}

function eventsTo(path: string): Site {
  const log = logLines();
  const observer = createEventsFile({
    ...{ path, host: 'edge', version: '0.1.0', log: log.log },
    durable: createDurableFs(),
    clock: fakeClock(),
  });
  return { observer, log };
}

const eventsIn = (path: string): Record<string, unknown>[] =>
  fs
    .readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('the file of events', () => {
  it('has one line for each event, readable by its owner only', () => {
    using dir = tempDir();
    const path = dir.join('events.jsonl');
    const { observer } = eventsTo(path);
    observer.onState?.('run');
    observer.onStatus?.(statusReport());
    observer.onStatus?.(statusReport({ freshness: { state: 'stale' } }));
    assert.deepEqual(
      eventsIn(path).map((one) => one['event']),
      ['agent.state', 'freshness.stale'],
    );
    assert.equal(fs.statSync(path).mode & 0o777, 0o600);
  });

  it('has no event for the state before the first report', () => {
    using dir = tempDir();
    const path = dir.join('events.jsonl');
    eventsTo(path).observer.onStatus?.(statusReport({ freshness: { state: 'frozen' } }));
    assert.equal(fs.existsSync(path), false);
  });

  it('becomes FILE.1 before it grows over its bound', () => {
    using dir = tempDir();
    const path = dir.join('events.jsonl');
    fs.writeFileSync(path, 'x'.repeat(maxEventsBytes - 10));
    eventsTo(path).observer.onState?.('run');
    assert.equal(fs.statSync(`${path}.1`).size, maxEventsBytes - 10);
    assert.deepEqual(
      eventsIn(path).map((one) => one['state']),
      ['run'],
    );
  });

  it('does not throw, logs the first failure, and counts lost events in the next line', () => {
    using dir = tempDir();
    const path = dir.join('not-yet', 'events.jsonl');
    const { observer, log } = eventsTo(path);
    observer.onState?.('init');
    observer.onState?.('run');
    assert.equal(log.named('events could not be written').length, 1);
    fs.mkdirSync(dir.join('not-yet'));
    observer.onState?.('shutdown');
    assert.deepEqual(
      eventsIn(path).map((one) => [one['event'], one['state'] ?? one['count']]),
      [
        ['agent.state', 'shutdown'],
        ['events.dropped', 2],
      ],
    );
  });
});
