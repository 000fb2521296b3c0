import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseSupervisordLog } from '../../../../src/workers/protocols/supervisord-log.js';
import {
  endsByCounters,
  parseUnitJournal,
  parseUnitRuns,
} from '../../../../src/workers/protocols/systemd-journal.js';

const ids = {
  stopping: 'de5b426a63be47a7b6ac3eaac82e2f6f',
  failed: 'd9b373ed55a64feb8242e02dbe79a49c',
  succeeded: '7ad2d189f7e94e70a38c781354912448',
  exited: '98e322203f7a4ed290d09fe03c09fe15',
};

function entry(atUs: number, id: keyof typeof ids, invocation = 'aa', fields: object = {}): string {
  const entryFields = { MESSAGE_ID: ids[id], INVOCATION_ID: invocation, ...fields };
  return JSON.stringify({ __REALTIME_TIMESTAMP: `${atUs}`, ...entryFields });
}

describe('the journal of a unit', () => {
  it('has an abnormal end for a failure without a request', () => {
    const text = [entry(10, 'exited'), entry(11, 'failed'), entry(20, 'failed', 'bb')].join('\n');
    assert.deepEqual(parseUnitJournal(text, { afterUs: 0, signal: undefined }), {
      abnormal: 2,
      clean: 0,
      bySignal: 0,
      lastAtUs: 20,
    });
  });

  it('has a clean end for a stop or restart, whatever the exit code, and for a success', () => {
    const text = [entry(10, 'stopping'), entry(11, 'failed'), entry(20, 'succeeded', 'bb')].join('\n');
    assert.deepEqual(parseUnitJournal(text, { afterUs: 0, signal: undefined }), {
      abnormal: 0,
      clean: 2,
      bySignal: 0,
      lastAtUs: 20,
    });
  });

  it('counts what comes after the mark, and remembers a stop that began before it', () => {
    const text = [entry(9, 'failed'), entry(10, 'stopping', 'bb'), entry(11, 'failed', 'bb')].join('\n');
    assert.deepEqual(parseUnitJournal(text, { afterUs: 10, signal: undefined }), {
      abnormal: 0,
      clean: 1,
      bySignal: 0,
      lastAtUs: 11,
    });
    assert.deepEqual(parseUnitJournal('', { afterUs: 10, signal: undefined }), {
      abnormal: 0,
      clean: 0,
      bySignal: 0,
      lastAtUs: undefined,
    });
  });

  it('counts an end by another signal than that of Writ against the release', () => {
    const ended = (status: string) =>
      [entry(10, 'exited', 'aa', { EXIT_CODE: 'killed', EXIT_STATUS: status }), entry(11, 'failed')].join(
        '\n',
      );
    const count = (status: string, signal: string | undefined) => {
      const { abnormal, bySignal } = parseUnitJournal(ended(status), { afterUs: 0, signal }) ?? {};
      return [abnormal, bySignal];
    };
    assert.deepEqual(count('10', 'USR1'), [0, 1]);
    assert.deepEqual(count('12', 'USR1'), [1, 0]);
    assert.deepEqual(count('11', 'HUP'), [1, 0]);
    assert.deepEqual(count('10', undefined), [1, 0], 'Writ sends it no signal');
    const own = entry(10, 'exited', 'bb', { EXIT_CODE: 'killed', EXIT_STATUS: '10' });
    const other = [own, entry(11, 'failed', 'aa')].join('\n');
    assert.equal(parseUnitJournal(other, { afterUs: 0, signal: 'USR1' })?.abnormal, 1, 'of another run');
    const code = entry(10, 'exited', 'aa', { EXIT_CODE: 'exited', EXIT_STATUS: '10' });
    const exited = [code, entry(11, 'failed')].join('\n');
    assert.equal(parseUnitJournal(exited, { afterUs: 0, signal: 'USR1' })?.abnormal, 1, 'exit code 10');
  });

  it('is undefined where a line is not an entry', () => {
    for (const text of ['No entries', '{}', 'null', '[1]', '{"__REALTIME_TIMESTAMP":"x"}'])
      assert.equal(parseUnitJournal(text, { afterUs: 0, signal: undefined }), undefined, text);
  });
});

describe('the counters of a unit', () => {
  const shown = (restarts: number, active = 'active', restart = 'on-failure'): string =>
    `InvocationID=aa\nNRestarts=${restarts}\nActiveState=${active}\nRestart=${restart}\n`;
  const runs = (...args: Parameters<typeof shown>) => {
    const parsed = parseUnitRuns(shown(...args));
    assert.ok(parsed);
    return parsed;
  };

  it('count restarts on failure, and a unit that failed', () => {
    assert.deepEqual(endsByCounters(runs(1), runs(3)), { abnormal: 2, unrecorded: 0 });
    assert.deepEqual(endsByCounters(runs(3), runs(1)), { abnormal: 1, unrecorded: 0 }, 'it was set back');
    const failed = runs(1, 'failed', 'no');
    assert.deepEqual(endsByCounters(runs(1), failed), { abnormal: 1, unrecorded: 0 });
    assert.deepEqual(endsByCounters(failed, failed), { abnormal: 0, unrecorded: 0 }, 'it was counted before');
  });

  it('leave a new run without a cause under any other policy', () => {
    const before = { ...runs(0, 'active', 'always'), invocation: 'bb' };
    assert.deepEqual(endsByCounters(before, runs(1, 'active', 'always')), { abnormal: 0, unrecorded: 1 });
  });

  it('are undefined where a property is missing or is not what systemd writes', () => {
    assert.equal(parseUnitRuns('InvocationID=aa\nNRestarts=1\nActiveState=active\n'), undefined);
    assert.equal(parseUnitRuns(shown(-1)), undefined);
  });
});

describe('the log of supervisord', () => {
  const log = [
    'ut by the bound',
    "2026-11-28 07:00:00,001 INFO spawned: 'web_0' with pid 7",
    '2026-11-28 07:00:01,002 WARN exited: web_0 (exit status 1; not expected)',
    '2026-11-28 07:00:02,003 WARN exited: web_0 (terminated by SIGSEGV; not expected)',
    '2026-11-28 07:00:03,004 INFO exited: web_0 (exit status 0; expected)',
    '2026-11-28 07:00:04,005 INFO stopped: web_0 (terminated by SIGTERM)',
    '2026-11-28 07:00:05,006 WARN exited: web_01 (exit status 1; not expected)',
    '2026-11-28 07:00:06,007 INFO gave up: web_0 entered FATAL state, too many start retries too quickly',
  ].join('\n');

  it('distinguishes unexpected exits and the FATAL state from stops and expected exits', () => {
    const lastAt = '2026-11-28 07:00:06,007';
    assert.deepEqual(parseSupervisordLog(log, { name: 'web_0', after: '' }), {
      abnormal: 3,
      clean: 2,
      bySignal: 0,
      lastAt,
    });
    assert.deepEqual(parseSupervisordLog(log, { name: 'web_01', after: '' }), {
      abnormal: 1,
      clean: 0,
      bySignal: 0,
      lastAt,
    });
  });

  it('counts an end by another signal than that of a notification against the release', () => {
    const endedBy = (how: string): string =>
      `2026-11-28 07:00:01,002 WARN exited: web_0 (${how}; not expected)\n`;
    const text = ['terminated by SIGHUP', 'terminated by SIGABRT', 'exit status 129'].map(endedBy).join('');
    const counted = (signal?: string) => {
      const { abnormal, bySignal } = parseSupervisordLog(text, { name: 'web_0', after: '', signal });
      return { abnormal, bySignal };
    };
    assert.deepEqual(counted('HUP'), { abnormal: 2, bySignal: 1 });
    assert.deepEqual(counted('USR1'), { abnormal: 3, bySignal: 0 });
    assert.deepEqual(counted(), { abnormal: 3, bySignal: 0 }, 'it is notified by a restart');
  });

  it('counts lines after the mark alone', () => {
    const found = parseSupervisordLog(log, { name: 'web_0', after: '2026-11-28 07:00:02,003' });
    assert.deepEqual([found.abnormal, found.clean], [1, 2]);
    assert.equal(parseSupervisordLog(log, { name: 'web_0', after: '2027' }).lastAt, undefined);
  });
});
