// Every code of trust and transport, wherever somebody looks: the cycle's result and exit code, the log line, status,
// health, history and `--json`; the policy is untouched, and the next good answer ends the alarm. The codes come from
// the catalogue itself, so that a new one is held to this too. That each is raised where it must be is held elsewhere.
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
import { showStatus, statusWord } from '../../../src/cli/show/show-status.js';
import type { CycleResult, Problem } from '../../../src/core/cycle/cycle-report.js';
import { type ErrorCode, errorCodes } from '../../../src/core/error-codes.js';
import { WritError } from '../../../src/core/errors.js';
import { classifyRefreshFailure } from '../../../src/core/status/freshness.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { publishNext } from '../../kit/assert/fault-table.js';
import { logLines } from '../../kit/assert/log-lines.js';
import { standingPolicy } from '../../kit/assert/standing-policy.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';

/** Not raised by a refresh or a download: each has a test of its own. */
const others: readonly ErrorCode[] = [
  // Of this host's configuration, as TLS_INVALID.
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
const codes = section.filter((code) => !others.includes(code));
const ofArchives = codes.filter((code) => /^(TARGET|DOWNLOAD)_/.test(code));
const ofMetadata = codes.filter((code) => !code.startsWith('TARGET_'));

type Where = 'fetch' | 'stream';

/** A source that fails with a code, in one of its two ways, as long as it is told to. */
function failing(trouble: {
  code?: ErrorCode;
  where: Where;
}): (source: RepositorySource) => RepositorySource {
  const fail = (where: Where): void => {
    if (trouble.code !== undefined && trouble.where === where)
      throw new WritError(trouble.code, 'made up', { facts: { role: 'timestamp' } });
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

async function activeHost(trouble: { code?: ErrorCode; where: Where }): Promise<TestHost> {
  const test = testHost({ source: failing(trouble) });
  await publishNext(test, 5);
  assert.equal((await test.pull()).outcome, 'activated');
  return test;
}

function isSeen(test: TestHost, host: Host, end: CycleEnd, code: ErrorCode) {
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

async function failsWith(where: Where, code: ErrorCode) {
  const trouble: { code?: ErrorCode; where: Where } = { where };
  using test = await activeHost(trouble);
  const { log, named } = logLines();
  const host = { ...test.host, log };
  await publishNext(test, 6);
  trouble.code = code;
  const stands = standingPolicy(test.host.paths);
  const end = await cycle(host);
  createRecorder().record(host, end, {});
  stands();
  const logged = named('cycle ended')[0]?.['result'] as CycleResult | undefined;
  assert.ok(has(logged?.problems, code), 'in the log');
  const report = isSeen(test, host, end, code);
  delete trouble.code;
  const well = await cycle(host);
  assert.equal(well.result.outcome, 'activated');
  assert.equal(well.refresh?.error, undefined);
  return report;
}

describe('a refresh that fails is seen by its code', () => {
  for (const code of ofMetadata) {
    it(code, async () => {
      const report = await failsWith('fetch', code);
      const { state, failing: attempts, refused } = report.freshness;
      const kind = classifyRefreshFailure(code);
      const expected = { refused: 'refused', expired: 'frozen', unreached: 'fresh', host: 'fresh' }[kind];
      assert.deepEqual([state, attempts?.code, attempts?.times], [expected, code, 1]);
      assert.equal(refused?.code, kind === 'refused' ? code : undefined);
      if (kind === 'refused') assert.deepEqual([statusWord(report), refused?.role], ['alarm', 'timestamp']);
      assert.equal(judgeHostHealth(report).level, kind === 'unreached' ? 'ok' : 'warning');
    });
  }
});

describe('a download that fails is seen by its code, and says nothing of the metadata', () => {
  for (const code of ofArchives) {
    it(code, async () => {
      const report = await failsWith('stream', code);
      assert.deepEqual([report.freshness.state, report.freshness.failing], ['fresh', undefined]);
    });
  }
});
