import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { showResult } from '../../../../src/cli/show/show-result.js';
import type { CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import { refusesAllText } from '../../../../src/core/status/worker-rules.js';
import { matchesFile } from '../../../kit/assert/golden.js';
import { blockText } from '../../../kit/cli/block-text.js';
import { bundleResult, cycleResult, problem, startedAtMs, worker } from '../../../kit/cli/cycle-results.js';

const checkFailed = problem(
  'CHECK_FAILED',
  'check "zones parse" refused dns-edge 42 (exit 1)\nblock.rpz:214: invalid IPv4 address',
);
const refused = problem('WORKER_REFUSED', "kresd@2 refused generation 18: view 'eu' undefined");
const unreachable = problem('WORKER_UNREACHABLE', 'kresd@2: connection refused on control/2');
const before = problem('REMEMBERED_REFUSAL', 'dns-edge 42 was refused: as before');
const retryAtMs = startedAtMs + 3_600_000;
const kept = bundleResult('unchanged', { bundle: 'access', fromSerial: 9, toSerial: 9, revision: 'v1.3' });
const moved = bundleResult('activated', { bundle: 'access', fromSerial: 9, toSerial: 10, revision: 'v1.4' });

const cases: Readonly<Record<string, CycleResult>> = {
  unchanged: cycleResult('unchanged', {
    bundles: [bundleResult('unchanged', { fromSerial: 42 })],
    generation: 18,
  }),
  'unchanged-unconfirmed': cycleResult('unchanged', {
    bundles: [bundleResult('unchanged', { fromSerial: 42 })],
    generation: 18,
    confirmed: false,
    warnings: [problem('WORKER_UNCONFIRMED', '1 of 1 workers of group ns proved nothing')],
  }),
  'unchanged-notified': cycleResult('unchanged', {
    bundles: [bundleResult('unchanged', { fromSerial: 42 })],
    generation: 18,
    workers: [worker('kresd@1', 'confirmed', '0'), worker('kresd@2', 'unreachable', 'down')],
  }),
  'rolled-back-silent': cycleResult('rolled-back', {
    problems: [problem('SILENT_REFUSAL', 'web/nginx: 2 of its 2 children still serve as before')],
  }),
  'unchanged-empty': (() => {
    const { generation: _none, fromGeneration: _before, ...rest } = cycleResult('unchanged', { bundles: [] });
    return rest;
  })(),
  activated: cycleResult('activated', {
    bundles: [bundleResult('activated'), kept],
    workers: [worker('kresd@1', 'confirmed', '0'), worker('kresd@2', 'confirmed', '0')],
  }),
  'activated-warning': cycleResult('activated', {
    warnings: [problem('METADATA_MISSING', 'the repository lists no bundle access any more')],
  }),
  unconfirmed: cycleResult('activated', {
    confirmed: false,
    workers: [worker('1234', 'notified', 'HUP sent'), worker('1235', 'notified', 'HUP sent')],
  }),
  'unconfirmed-others': cycleResult('activated', {
    confirmed: false,
    workers: [worker('kresd@1', 'confirmed', '0')],
  }),
  rejected: cycleResult('rejected', {
    bundles: [bundleResult('rejected', { problem: checkFailed, retryAtMs })],
    problems: [checkFailed],
  }),
  'rejected-first': (() => {
    const { generation: _none, fromGeneration: _before, ...rest } = cycleResult('rejected');
    const { fromSerial: _serial, ...bundle } = bundleResult('rejected', { problem: checkFailed, retryAtMs });
    return { ...rest, bundles: [bundle], problems: [checkFailed] };
  })(),
  'remembered-and-broken': cycleResult('rejected', {
    bundles: [
      bundleResult('rejected', {
        remembered: true,
        retryAtMs,
        problem: problem('REMEMBERED_REFUSAL', 'as before'),
      }),
      bundleResult('failed', {
        bundle: 'access',
        problem: problem('CHECK_BROKEN', 'access: the check "parses" gave no verdict (out of memory)'),
      }),
    ],
  }),
  remembered: cycleResult('rejected', {
    bundles: [
      bundleResult('rejected', {
        problem: problem('REMEMBERED_REFUSAL', 'dns-edge 42 was refused at 11-21 13:02 UTC: CHECK_FAILED'),
        remembered: true,
        retryAtMs,
      }),
    ],
  }),
  'rejected-worker-gone': cycleResult('rejected', {
    bundles: [bundleResult('rejected', { problem: checkFailed, retryAtMs })],
    problems: [checkFailed, problem('WORKERS_MISSING', 'dns: 0 workers, at least 1 must be there')],
  }),
  'one-of-two-rejected': cycleResult('rejected', {
    changed: true,
    generation: 18,
    bundles: [bundleResult('rejected', { problem: checkFailed, retryAtMs }), moved],
    problems: [checkFailed],
  }),
  'rolled-back': cycleResult('rolled-back', {
    bundles: [bundleResult('rolled-back', { problem: refused, retryAtMs })],
    problems: [refused],
    durationMs: 800,
  }),
  'rolled-back-to-none': (() => {
    const { generation: _none, fromGeneration: _before, ...rest } = cycleResult('rolled-back');
    const { fromSerial: _serial, ...bundle } = bundleResult('rolled-back', { problem: refused });
    return { ...rest, bundles: [bundle], problems: [refused] };
  })(),
  'rolled-back-others-moved': cycleResult('rolled-back', {
    changed: true,
    generation: 19,
    bundles: [bundleResult('rolled-back', { problem: refused }), moved],
    problems: [refused],
  }),
  degraded: cycleResult('degraded', {
    bundles: [bundleResult('degraded')],
    workers: [
      worker('kresd@1', 'confirmed', '0'),
      worker('kresd@2', 'unreachable', 'connection refused on control/2'),
    ],
    problems: [unreachable],
  }),
  'degraded-refused': cycleResult('degraded', {
    bundles: [bundleResult('degraded')],
    workers: [
      worker('kresd@1', 'confirmed', '0'),
      worker('kresd@2', 'refused', 'rules line 3'),
      worker('kresd@3', 'unreachable', `${refusesAllText}busy`),
    ],
    problems: [
      { ...problem('WORKER_REFUSED', 'resolver/kresd@2: rules line 3'), facts: { worker: 'kresd@2' } },
    ],
  }),
  'degraded-missing': cycleResult('degraded', {
    bundles: [bundleResult('degraded')],
    problems: [problem('WORKERS_MISSING', 'group resolver has 1 worker, `min` is 2')],
  }),
  failed: cycleResult('failed', {
    bundles: [bundleResult('unchanged', { toSerial: 41 })],
    problems: [
      problem(
        'METADATA_EXPIRED',
        'timestamp v1310 expired 2 d ago (expected after 2026-11-21, actual 2026-11-19)',
      ),
    ],
  }),
  'failed-bundle': cycleResult('failed', {
    bundles: [
      bundleResult('failed', {
        problem: problem('DOWNLOAD_DIGEST', 'dns-edge/stable.tar.br has another digest'),
      }),
      kept,
    ],
    problems: [problem('DOWNLOAD_DIGEST', 'dns-edge/stable.tar.br has another digest')],
  }),
  'failed-digest': (() => {
    const facts = { expected: `sha256:${'a'.repeat(64)}`, actual: `sha256:${'b'.repeat(64)}` };
    const digest = { ...problem('DOWNLOAD_DIGEST', 'the archive has not the signed digest'), facts };
    return cycleResult('failed', {
      bundles: [bundleResult('failed', { problem: digest })],
      problems: [digest],
    });
  })(),
  'refused-and-left': cycleResult('rejected', {
    bundles: [
      bundleResult('rejected', { fromSerial: 43, activeSerial: 41, remembered: true, problem: before }),
    ],
    problems: [before],
    warnings: [problem('ACTIVE_WITHDRAWN', 'the publisher has withdrawn dns-edge 43')],
    fromGeneration: 19,
    generation: 18,
    changed: true,
  }),
  'rolled-back-and-left': cycleResult('rolled-back', {
    bundles: [bundleResult('rolled-back', { fromSerial: 43, activeSerial: 41, problem: refused })],
    problems: [refused],
    fromGeneration: 19,
    generation: 18,
    changed: true,
  }),
  deferred: cycleResult('deferred', {
    bundles: [
      bundleResult('deferred', {
        problem: problem('RELEASE_HELD', 'dns-edge 42 is held by anna since 11-21 14:02'),
      }),
    ],
    problems: [problem('RELEASE_HELD', 'dns-edge 42 is held by anna since 11-21 14:02')],
  }),
  blocked: cycleResult('blocked', {
    bundles: [
      bundleResult('blocked', {
        problem: problem('ACTIVATION_BLOCKED', '3 starts behind generation 18 did not reach its end'),
      }),
    ],
    problems: [problem('ACTIVATION_BLOCKED', '3 starts behind generation 18 did not reach its end')],
  }),
  busy: cycleResult('failed', {
    bundles: [],
    problems: [problem('LOCK_HELD', 'process 4711 has held /var/lib/writ/lock for 10 s')],
  }),
  'back-by-hand': cycleResult('activated', {
    type: 'rollback.result',
    trigger: 'rollback',
    fromGeneration: 18,
    generation: 17,
    bundles: [
      bundleResult('activated', { fromSerial: 42, toSerial: 41, revision: 'a01b', resumable: true }),
      kept,
    ],
    durationMs: 400,
  }),
};

describe('the last block of a cycle', () => {
  for (const [name, result] of Object.entries(cases)) {
    it(`matches its golden file: ${name}`, () =>
      matchesFile(`test/golden/pull/${name}.txt`, blockText(showResult(result))));
  }

  it('calls a rollback of a host without workers activated, as a pull does', () => {
    const back = { type: 'rollback.result', fromGeneration: 18, generation: 17, confirmed: false } as const;
    const [plain = ''] = showResult(cycleResult('activated', back)).lines;
    assert.match(plain, /^ACTIVATED generation 17 /);
    const workers = [worker('1234', 'notified', 'HUP sent')];
    const [open = ''] = showResult(cycleResult('activated', { ...back, workers })).lines;
    assert.match(open, /^ACTIVATED \(unconfirmed\) generation 17 /);
  });

  it('names the generation to undo a rollback when the end of the hold would not reactivate its release', () => {
    const left = bundleResult('activated', { fromSerial: 42, toSerial: 41 });
    const back = { type: 'rollback.result', fromGeneration: 18, generation: 17, bundles: [left] } as const;
    assert.equal(showResult(cycleResult('activated', back)).undo, 'writ rollback 18');
  });

  it('names the active release while another one waits after a refusal of each generation', () => {
    for (const code of ['REFUSAL_REPEATED', 'SILENT_REFUSAL'] as const) {
      const waits = bundleResult('degraded', { problem: problem(code, 'dns-edge 42 waits until 18:00') });
      const bundles = [waits, kept];
      const shown = showResult(cycleResult('degraded', { changed: false, generation: 17, bundles }));
      assert.match(shown.lines[0] ?? '', /^DEGRADED {2}generation 17 is active \(dns-edge 41; access 9\)/);
    }
    const after = showResult(cycleResult('degraded', { bundles: [bundleResult('degraded'), kept] }));
    assert.match(after.lines[0] ?? '', /\(dns-edge 42; access 9\)/);
  });

  it('begins with the outcome in capitals for every outcome', () => {
    for (const [name, result] of Object.entries(cases)) {
      const label = name === 'busy' ? 'BUSY' : result.outcome.replace('-', ' ').toUpperCase();
      assert.ok(showResult(result).lines[0]?.startsWith(label), name);
    }
  });

  it('keeps a long output of a hook to twenty lines', () => {
    const long = problem('CHECK_FAILED', Array.from({ length: 500 }, (_, n) => `line ${n}`).join('\n'));
    const { lines } = showResult(
      cycleResult('rejected', { bundles: [bundleResult('rejected', { problem: long })] }),
    );
    assert.equal(lines.filter((line) => /^ {2}line \d/.test(line)).length, 20);
    assert.ok(lines.includes('  (480 more lines)'));
  });
});
