// Every code of trust and transport is in each report: the cycle's result and exit code, the log line, status, health,
// history and `--json`. The policy is unchanged, and the next valid response ends the problem. The codes come from the
// catalogue itself, so that a new code is tested too. Other tests check that each code is raised in the right case.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { syncCycle } from '../../../src/agent/cycle/sync-cycle.js';
import { keepContact } from '../../../src/agent/freshness/contact-memory.js';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import { readHistory } from '../../../src/agent/job/history.js';
import { newCycleId } from '../../../src/agent/job/progress.js';
import { createRecorder } from '../../../src/agent/job/record.js';
import { readStatusFile, writeStatusFile } from '../../../src/agent/report/status-file.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import type { Host } from '../../../src/agent/state/host.js';
import { cycleAnswer } from '../../../src/cli/host/cycle-command.js';
import { showStatus, statusLabel } from '../../../src/cli/show/show-status.js';
import type { CycleResult, Problem } from '../../../src/core/cycle/cycle-report.js';
import { type ErrorCode, errorCodes } from '../../../src/core/error-codes.js';
import { WritError } from '../../../src/core/errors.js';
import { classifyRefreshFailure } from '../../../src/core/status/freshness.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { publishNext } from '../../kit/assert/fault-table.js';
import { logLines } from '../../kit/assert/log-lines.js';
import { longCase } from '../../kit/assert/long-case.js';
import { standingPolicy } from '../../kit/assert/standing-policy.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';

/** Codes that no refresh or download raises: each has a test of its own. */
const notOfTransport: readonly ErrorCode[] = [
  // A fault of this host's configuration, like TLS_INVALID.
  'PROXY_INVALID',
  'CLOCK_BEHIND',
  'UNTRUSTED_ACTIVE',
  'RELEASE_UNTRUSTED',
  'RELEASE_WITHDRAWN',
  'ACTIVE_WITHDRAWN',
  'POLICY_STALE',
  'STALE_COMMAND_FAILED',
  'RELEASE_STALE',
];

const all = Object.keys(errorCodes) as ErrorCode[];
const section = all.slice(all.indexOf('METADATA_MALFORMED'), all.indexOf('ARCHIVE_MALFORMED'));
const codes = section.filter((code) => !notOfTransport.includes(code));
const archiveCodes = codes.filter((code) => /^(TARGET|DOWNLOAD)_/.test(code));
const metadataCodes = codes.filter((code) => !code.startsWith('TARGET_'));

type FailedCall = 'fetch' | 'stream';

/** A source whose `fetch` or `stream` fails with the code of `fault`, as long as `fault` has one. */
function failing(fault: {
  code?: ErrorCode;
  call: FailedCall;
}): (source: RepositorySource) => RepositorySource {
  const fail = (call: FailedCall): void => {
    if (fault.code !== undefined && fault.call === call)
      throw new WritError(fault.code, 'made up', { facts: { role: 'timestamp' } });
  };
  return (source) => ({
    ...source,
    fetch: (path, options) => {
      if (path.endsWith('timestamp.json')) fail('fetch');
      return source.fetch(path, options);
    },
    stream: (path, options) => {
      fail('stream');
      return source.stream(path, options);
    },
  });
}

function has(problems: readonly Problem[] | undefined, code: ErrorCode): boolean {
  return problems?.some((one) => one.code === code) ?? false;
}

function cycle(host: Host): Promise<CycleEnd> {
  const signal = new AbortController().signal;
  return syncCycle(host, { cycle: newCycleId(), trigger: 'poll', force: 'no', signal });
}

async function activeHost(fault: { code?: ErrorCode; call: FailedCall }): Promise<TestHost> {
  const test = testHost({ source: failing(fault) });
  await publishNext(test, 5);
  assert.equal((await test.pull()).outcome, 'activated');
  return test;
}

function assertReported(test: TestHost, host: Host, end: CycleEnd, code: ErrorCode) {
  const { result } = end;
  assert.ok(has(result.problems, code), `${code} in the result: ${result.problems.map((one) => one.code)}`);
  assert.deepEqual([result.exitCode, result.changed], [1, false]);
  const answer = cycleAnswer(result);
  assert.equal(answer.details['code'], code);
  assert.ok(answer.lines.join('\n').includes(`[${code}]`), answer.lines.join('\n'));
  const [entry] = readHistory(test.host.paths, { limit: 1 });
  assert.ok(has(entry?.result.problems, code), 'in the history');
  const contact = keepContact(undefined, test.clock);
  contact.note({ atMs: test.clock.nowMs() });
  contact.note(end.refresh);
  const report = statusReport(host, {
    version: '0.1.0',
    state: 'run',
    contact: contact.read(),
    problems: [],
    last: result,
  });
  assert.ok(has(report.problems, code), 'in the status');
  assert.match(showStatus(report).lines.join('\n'), new RegExp(`\\b${code}\\b`));
  writeStatusFile(host, report);
  assert.ok(has(readStatusFile(host.paths)?.problems, code), 'in status.json');
  return report;
}

async function failsWith(call: FailedCall, code: ErrorCode) {
  const fault: { code?: ErrorCode; call: FailedCall } = { call };
  using test = await activeHost(fault);
  const { log, named } = logLines();
  const host = { ...test.host, log };
  await publishNext(test, 6);
  fault.code = code;
  const assertPolicyUnchanged = standingPolicy(test.host.paths);
  const end = await cycle(host);
  createRecorder().record(host, end, {});
  assertPolicyUnchanged();
  const logged = named('cycle ended')[0]?.['result'] as CycleResult | undefined;
  assert.ok(has(logged?.problems, code), 'in the log');
  const report = assertReported(test, host, end, code);
  delete fault.code;
  const recovered = await cycle(host);
  assert.equal(recovered.result.outcome, 'activated');
  assert.equal(recovered.refresh?.error, undefined);
  return report;
}

describe(
  'a failed refresh is reported with its code in result, log, history, status and health',
  longCase,
  () => {
    for (const code of metadataCodes) {
      it(code, async () => {
        const report = await failsWith('fetch', code);
        const { state, failing: attempts, refused } = report.freshness;
        const kind = classifyRefreshFailure(code);
        const expected = { refused: 'refused', expired: 'frozen', unreached: 'fresh', host: 'fresh' }[kind];
        assert.deepEqual([state, attempts?.code, attempts?.times], [expected, code, 1]);
        assert.equal(refused?.code, kind === 'refused' ? code : undefined);
        if (kind === 'refused')
          assert.deepEqual([statusLabel(report), refused?.role], ['alarm', 'timestamp']);
        assert.equal(judgeHostHealth(report).level, kind === 'unreached' ? 'ok' : 'warning');
      });
    }
  },
);

describe('a failed download is reported with its code, and the metadata stays fresh', longCase, () => {
  for (const code of archiveCodes) {
    it(code, async () => {
      const report = await failsWith('stream', code);
      assert.deepEqual([report.freshness.state, report.freshness.failing], ['fresh', undefined]);
    });
  }
});
