import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { showCycle, showHistory } from '../../../../src/cli/show/show-history.js';
import type { BundleResult } from '../../../../src/core/cycle/cycle-report.js';
import type { HistoryEntry } from '../../../../src/core/protocol/control-protocol.js';
import { matchesFile } from '../../../kit/assert/golden.js';
import { blockText } from '../../../kit/cli/block-text.js';
import { bundleResult, problem } from '../../../kit/cli/cycle-results.js';
import { historyEntries } from '../../../kit/cli/status-reports.js';

describe('the history of a host', () => {
  it('is one line a cycle', () =>
    matchesFile('test/golden/history/list.txt', blockText(showHistory(historyEntries))));
  it('marks a user as one, because `root` alone could be the metadata role', () => {
    const [entry] = historyEntries;
    const lineBy = (by: string) => showHistory([{ ...entry!, by }]).lines.join();
    const headBy = (by: string) => showCycle({ ...entry!, by }).lines[0] ?? '';
    assert.match(lineBy('root'), / user root /);
    assert.match(headBy('root'), / by user root\b/);
    assert.match(headBy('writ'), / by writ\b/);
  });

  it('has one line for equal failures in a row, with their number and the time of the first one', () => {
    const [entry] = historyEntries;
    const problem = {
      code: 'LOADER_BROKEN',
      message: 'the loader ended by a signal',
      hint: 'x',
      facts: {},
    } as const;
    const failed = (minute: number, message: string = problem.message): HistoryEntry => {
      const startedAtMs = Date.UTC(2026, 8, 1, 12, minute);
      const problems = [{ ...problem, message }];
      const cycle = `c-${minute}`;
      const result = { ...entry!.result, cycle, startedAtMs, problems, bundles: [], changed: false };
      return { ...entry!, result: { ...result, outcome: 'failed', warnings: [] } };
    };
    const linesOf = (...entries: readonly HistoryEntry[]): string[] => showHistory(entries).lines.slice(1);
    const [line = '', ...others] = linesOf(failed(3), failed(2), failed(1));
    assert.match(
      line,
      /2026-09-01 12:03:00 {2}c-3 .*the loader ended by a signal \(3 times since 2026-09-01 12:01:00\)$/,
    );
    assert.deepEqual(others, []);
    assert.equal(linesOf(failed(3), failed(2, 'another text'), failed(1)).length, 3);
    const byPerson = { ...failed(2), by: 'alice' };
    assert.equal(linesOf(failed(3), byPerson, failed(1)).length, 3);
    const changed = { ...failed(2), result: { ...failed(2).result, changed: true } };
    assert.equal(linesOf(changed, changed).length, 2);
    const repeated = [
      ...Array.from({ length: 25 }, (_, index) => failed(59 - index)),
      entry!,
      entry!,
      entry!,
    ];
    const [counted = '', ...older] = showHistory(repeated, 3).lines.slice(1);
    assert.match(counted, /\(25 times since 2026-09-01 12:35:00\)$/);
    assert.equal(older.length, 2, 'the limit counts lines');
  });

  it('may be empty', () => matchesFile('test/golden/history/empty.txt', blockText(showHistory([]))));
  it('prints a short reason for a bundle that did not move', () => {
    const [entry] = historyEntries;
    assert.ok(entry);
    const why = (more: Partial<BundleResult>): string | undefined => {
      const bundles = [bundleResult('rejected', more)];
      return showHistory([{ ...entry, result: { ...entry.result, bundles } }])
        .lines[1]?.split('  ')
        .at(-1);
    };
    const refused = problem(
      'CHECK_FAILED',
      'dns-edge: the check "zones" refuses the candidate\nblock.rpz:7: bad',
    );
    assert.equal(why({ problem: refused }), 'dns-edge 42: the check "zones" refuses the candidate');
    assert.equal(why({ problem: refused, remembered: true }), 'dns-edge 42: refused before');
    const waits = problem('ACTIVATION_PAUSED', 'dns-edge 42 waits: paused by anna until writ resume: x');
    assert.equal(why({ problem: waits }), 'dns-edge 42: waits: paused by anna until writ resume: x');
  });
  it('reports that the release that a move leaves was withdrawn', () => {
    const [entry] = historyEntries;
    assert.ok(entry);
    const moved = bundleResult('activated', { fromSerial: 43, toSerial: 42, withdrawn: true });
    const result = { ...entry.result, bundles: [moved] };
    const [, line = ''] = showHistory([{ ...entry, result }]).lines;
    assert.match(line, / {2}dns-edge 43 -> 42 \(43 was withdrawn\)$/);
  });
  it('names the serial that a release corrects, whether the release is active or refused', () => {
    const [entry] = historyEntries;
    assert.ok(entry);
    const shown = (one: BundleResult): string | undefined =>
      showHistory([{ ...entry, result: { ...entry.result, bundles: [one] } }])
        .lines[1]?.split('  ')
        .at(-1);
    const active = bundleResult('activated', { fromSerial: 41, toSerial: 42, fixes: 40 });
    assert.equal(shown(active), 'dns-edge 41 -> 42, fixes 40');
    const refused = bundleResult('rejected', { problem: problem('CHECK_FAILED', 'dns-edge: no'), fixes: 40 });
    assert.equal(shown(refused), 'dns-edge 42, fixes 40: no');
  });
  it('names no move for a release that waits after a refusal of each generation', () => {
    const [entry] = historyEntries;
    assert.ok(entry);
    for (const code of ['REFUSAL_REPEATED', 'SILENT_REFUSAL'] as const) {
      const bundles = [bundleResult('degraded', { problem: problem(code, 'dns-edge 42 waits until 18:00') })];
      const [, line = ''] = showHistory([{ ...entry, result: { ...entry.result, bundles } }]).lines;
      assert.match(line, / {2}dns-edge 42: waits until 18:00$/);
    }
    const moved = { ...entry.result, bundles: [bundleResult('degraded')] };
    assert.match(showHistory([{ ...entry, result: moved }]).lines[1] ?? '', / {2}dns-edge \d+ -> 42$/);
  });
  it('prints the end and the reason of a pause', () => {
    const [entry] = historyEntries;
    assert.ok(entry);
    const result = { ...entry.result, outcome: 'unchanged', bundles: [] } as const;
    const [, line = ''] = showHistory([
      { ...entry, result, reason: 'paused until 18:00: ticket 4711' },
    ]).lines;
    assert.match(line, / {2}paused until 18:00: ticket 4711$/);
  });
  it('marks an activation as unconfirmed when no worker confirmed it', () => {
    const [entry] = historyEntries;
    assert.ok(entry);
    const shown = (confirmed: boolean): string => {
      const result = { ...entry.result, outcome: 'activated', generation: 7, confirmed } as const;
      return showHistory([{ ...entry, result }]).lines[1] ?? '';
    };
    assert.ok(shown(false).includes('  activated (unconfirmed)  '));
    assert.ok(!shown(true).includes('unconfirmed'));
  });
  it('prints every line of one cycle', () =>
    matchesFile('test/golden/history/cycle.txt', blockText(showCycle(historyEntries[1]!))));
});
