import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { appendHistory, readHistory, requireHistory } from '../../../../src/agent/job/history.js';
import { createRecorder } from '../../../../src/agent/job/record.js';
import { hostPaths } from '../../../../src/agent/state/paths.js';
import type { CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import type { HistoryEntry } from '../../../../src/core/protocol/control-protocol.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { cycleResult, problem } from '../../../kit/cli/cycle-results.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { testHost } from '../../../kit/host/test-host.js';

const durable = createDurableFs();
const pathsIn = (dir: TempDir): ReturnType<typeof hostPaths> =>
  hostPaths({ state: dir.path, policy: dir.path, run: dir.path, socket: '' });
const entry = (cycle: string, text = ''): HistoryEntry => ({
  schema: 1,
  type: 'history.entry',
  result: cycleResult('activated', { cycle }),
  steps: [{ step: 'refresh', verdict: 'ok', text, durationMs: 1 }],
});
const cyclesOf = (found: readonly HistoryEntry[]): string[] => found.map((one) => one.result.cycle);

describe('the history', () => {
  it('is empty on a new host', () => {
    using dir = tempDir();
    assert.deepEqual(readHistory(pathsIn(dir), { limit: 5 }), []);
  });

  it('is read newest first, up to the requested number, or one cycle by its id', () => {
    using dir = tempDir();
    const paths = pathsIn(dir);
    for (const cycle of ['c-1', 'c-2', 'c-3']) appendHistory(paths, durable, entry(cycle));
    assert.deepEqual(cyclesOf(readHistory(paths, { limit: 2 })), ['c-3', 'c-2']);
    assert.deepEqual(cyclesOf(readHistory(paths, { limit: 1, cycle: 'c-1' })), ['c-1']);
    assert.deepEqual(readHistory(paths, { limit: 1, cycle: 'c-9' }), []);
    assert.deepEqual(readHistory(paths, { limit: 1 })[0], entry('c-3'));
    assert.equal(fs.statSync(paths.history).mode & 0o777, 0o600);
  });

  it('loses only the half line that a crash left at its end', () => {
    using dir = tempDir();
    const paths = pathsIn(dir);
    appendHistory(paths, durable, entry('c-1'));
    fs.appendFileSync(paths.history, JSON.stringify(entry('c-2')).slice(0, 100));
    assert.deepEqual(cyclesOf(readHistory(paths, { limit: 5 })), ['c-1']);
    appendHistory(paths, durable, entry('c-3'));
    assert.deepEqual(cyclesOf(readHistory(paths, { limit: 5 })), ['c-3', 'c-1']);
  });

  it('omits lines that are not entries', () => {
    using dir = tempDir();
    const paths = pathsIn(dir);
    fs.writeFileSync(paths.history, 'text\n{}\n{"type":"history.entry"}\n[1]\n');
    appendHistory(paths, durable, entry('c-1'));
    assert.deepEqual(cyclesOf(readHistory(paths, { limit: 5 })), ['c-1']);
  });

  it('that is a FIFO, a directory or a link is set aside, and begins again without a wait', () => {
    const obstacles: Readonly<Record<string, (path: string) => void>> = {
      fifo: (path) => execFileSync('mkfifo', [path]),
      directory: (path) => fs.mkdirSync(path),
      link: (path) => fs.symlinkSync('/etc/hostname', path),
    };
    for (const put of Object.values(obstacles)) {
      using dir = tempDir();
      const paths = pathsIn(dir);
      put(paths.history);
      assert.deepEqual(readHistory(paths, { limit: 5 }), []);
      assert.equal(throwsCode('STATE_DAMAGED', () => requireHistory(paths)).facts['path'], paths.history);
      assert.deepEqual(appendHistory(paths, durable, entry('c-1')), [paths.history]);
      assert.deepEqual(appendHistory(paths, durable, entry('c-1')), []);
      requireHistory(paths);
      fs.rmSync(paths.history);
      appendHistory(paths, durable, entry('c-1'));
      assert.deepEqual(cyclesOf(readHistory(paths, { limit: 5 })), ['c-1']);
      assert.equal(fs.lstatSync(`${paths.history}.damaged`).isFile(), false);
    }
  });

  it('above its limit is read from its end alone, and rotated by the next line', () => {
    using dir = tempDir();
    const paths = pathsIn(dir);
    appendHistory(paths, durable, entry('c-1'));
    fs.truncateSync(paths.history, 3_000_000_000);
    fs.appendFileSync(paths.history, `\n${JSON.stringify(entry('c-2'))}\n`);
    assert.deepEqual(cyclesOf(readHistory(paths, { limit: 5 })), ['c-2']);
    fs.mkdirSync(`${paths.history}.1`);
    appendHistory(paths, durable, entry('c-3'));
    assert.deepEqual(cyclesOf(readHistory(paths, { limit: 5 })), ['c-3', 'c-2']);
    assert.ok(fs.statSync(paths.history).size < 10_000);
    assert.ok(fs.statSync(`${paths.history}.1.damaged`).isDirectory());
  });

  it('is rotated before it exceeds 10 MB, and read from both files', () => {
    using dir = tempDir();
    const paths = pathsIn(dir);
    appendHistory(paths, durable, entry('c-1'));
    fs.truncateSync(paths.history, 9_999_900);
    appendHistory(paths, durable, entry('c-2', 'x'.repeat(200)));
    assert.equal(fs.statSync(`${paths.history}.1`).size, 9_999_900);
    assert.ok(fs.statSync(paths.history).size < 2000);
    assert.deepEqual(cyclesOf(readHistory(paths, { limit: 5 })), ['c-2', 'c-1']);
  });

  it('cuts an entry that is too long for a line of the control socket', () => {
    using dir = tempDir();
    const paths = pathsIn(dir);
    appendHistory(paths, durable, entry('c-1', 'x'.repeat(1_000_000)));
    assert.ok(fs.statSync(paths.history).size < 60_100);
    assert.deepEqual(cyclesOf(readHistory(paths, { limit: 5 })), ['c-1']);
  });
});

describe('a recorder', () => {
  const progress = { steps: [] } as never;
  const refused = cycleResult('rejected', { problems: [problem('REMEMBERED_REFUSAL', 'no')] });
  const record = (results: readonly (readonly [CycleResult, string?])[]): string[] => {
    using test = testHost();
    const recorder = createRecorder();
    for (const [result, by] of results)
      recorder.record(test.host, { result, progress }, by === undefined ? {} : { by });
    return cyclesOf(readHistory(test.host.paths, { limit: 10 })).reverse();
  };

  it('writes no line for a poll that found nothing', () => {
    assert.deepEqual(record([[cycleResult('unchanged')]]), []);
  });

  it('writes the same problem once, and again when a person asked', () => {
    const named = (cycle: string): CycleResult => ({ ...refused, cycle });
    assert.deepEqual(record([[named('c-1')], [named('c-2')], [named('c-3'), 'anna']]), ['c-1', 'c-3']);
  });

  it('writes every change', () => {
    const named = (cycle: string): CycleResult => cycleResult('activated', { cycle });
    assert.deepEqual(record([[named('c-1')], [named('c-2')]]), ['c-1', 'c-2']);
  });

  it('writes each attempt that swapped and restored, and not the polls between them', () => {
    using test = testHost();
    const recorder = createRecorder();
    const swap = { step: 'swap', text: 'generation 1 -> 2', durationMs: 1 };
    const record = (cycle: string, outcome: CycleResult['outcome'], verdict?: 'ok' | 'fail'): void => {
      const problems = [problem('SILENT_REFUSAL', 'no')];
      const steps = verdict === undefined ? [] : [{ ...swap, verdict }];
      recorder.record(
        test.host,
        { result: cycleResult(outcome, { cycle, problems, changed: false }), progress: { steps } as never },
        {},
      );
    };
    record('c-1', 'rolled-back', 'ok');
    record('c-2', 'rolled-back', 'ok');
    record('c-3', 'degraded');
    record('c-4', 'degraded');
    record('c-5', 'rolled-back', 'ok');
    record('c-6', 'failed', 'fail');
    record('c-7', 'failed', 'fail');
    const found = cyclesOf(readHistory(test.host.paths, { limit: 10 })).reverse();
    assert.deepEqual(found, ['c-1', 'c-2', 'c-3', 'c-5', 'c-6']);
    assert.equal(readHistory(test.host.paths, { limit: 1, cycle: 'c-2' }).length, 1);
  });

  it('writes a line about the repair if the history was not a regular file', () => {
    using test = testHost();
    const { history } = test.host.paths;
    execFileSync('mkfifo', [history]);
    createRecorder().record(test.host, { result: cycleResult('activated', { cycle: 'c-1' }), progress }, {});
    const reported = readHistory(test.host.paths, { limit: 10 }).map(({ result }) => {
      const warnings = result.warnings.map(({ code, facts }) => [code, facts['kept']]);
      return [result.trigger, result.outcome, warnings];
    });
    assert.deepEqual(reported, [
      ['recovery', 'unchanged', [['STATE_REBUILT', `${history}.damaged`]]],
      ['pull', 'activated', []],
    ]);
  });

  it('does not end a cycle when its file cannot be written', () => {
    using test = testHost();
    fs.rmSync(test.host.paths.state, { recursive: true });
    createRecorder().record(test.host, { result: cycleResult('activated'), progress }, {});
  });
});
