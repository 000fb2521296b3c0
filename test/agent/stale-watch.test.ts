// Policy older than `maxStale`: the command of the operator is run once a period and boot, again until it succeeds, and
// nothing but a verified answer ends the period.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { type ContactKeeper, freshnessOf, keepContact } from '../../src/agent/freshness.js';
import { readHistory } from '../../src/agent/history.js';
import type { Host } from '../../src/agent/host.js';
import { createStaleWatch, type StaleWatch } from '../../src/agent/stale-watch.js';
import { type AgentFacts, statusReport } from '../../src/agent/status-report.js';
import type { FreshnessConfig, HookConfig } from '../../src/core/config.js';
import type { ErrorCode } from '../../src/core/errors.js';
import type { FreshnessReport } from '../../src/core/freshness.js';
import { type TempDir, tempDir } from '../support/temp-dir.js';
import { type TestHost, testHost } from '../support/test-host.js';

const minuteMs = 60_000;
const hourMs = 3_600_000;
const signal = new AbortController().signal;

function shell(script: string): HookConfig {
  return { run: ['sh', '-c', script], timeoutMs: 10_000 };
}

interface Site extends Disposable {
  readonly test: TestHost;
  readonly contact: ContactKeeper;
  /** An attempt to refresh now. */
  attempt(code?: ErrorCode, role?: string): void;
  check(): Promise<'changed' | 'same'>;
  /** As a restart of the agent; perhaps in another boot. */
  restart(boot?: string): void;
  freshness(): FreshnessReport;
  /** Lines that the commands have written so far. */
  lines(): string[];
}

/** A host whose policy was proven current just now; commands write what they have to say into a file. */
function site(config: (out: string) => Partial<FreshnessConfig>): Site {
  const dir: TempDir = tempDir();
  const out = dir.join('out');
  const freshness = { staleAfterMs: 15 * minuteMs, maxStaleMs: hourMs, ...config(out) };
  const test = testHost({ config: { freshness } });
  let host: Host = test.host;
  let contact = keepContact(undefined, test.clock);
  let watch: StaleWatch = createStaleWatch('boot-1');
  contact.note({ atMs: test.clock.nowMs() });
  return {
    test,
    get contact() {
      return contact;
    },
    attempt: (code, role) => {
      const error = code && { code, facts: role === undefined ? {} : { role } };
      contact.note({ atMs: test.clock.nowMs(), ...(error ? { error } : {}) });
    },
    check: () => watch.check(host, contact, signal),
    restart: (boot = 'boot-1') => {
      const known = statusReport(host, { ...facts, contact: contact.read() });
      host = test.reopen();
      contact = keepContact(known, test.clock);
      watch = createStaleWatch(boot);
    },
    freshness: () => freshnessOf(host, contact.read()),
    lines: () => (fs.existsSync(out) ? fs.readFileSync(out, 'utf8').trim().split('\n') : []),
    [Symbol.dispose]: () => {
      test[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

const facts: Omit<AgentFacts, 'contact'> = { version: '0.1.0', state: 'run', problems: [] };
const stop = (out: string): Partial<FreshnessConfig> => ({ onStale: shell(`echo stop >> ${out}`) });
const stopAndStart = (out: string): Partial<FreshnessConfig> => ({
  ...stop(out),
  onFresh: shell(`echo start >> ${out}`),
});

async function growOld(it: Site, code: ErrorCode = 'SERVER_UNREACHABLE'): Promise<void> {
  await it.test.clock.advance(61 * minuteMs);
  it.attempt(code);
}

describe('policy older than maxStale', () => {
  it('runs the command once, and not a moment before', async () => {
    using it = site(stop);
    await it.test.clock.advance(hourMs);
    it.attempt('SERVER_UNREACHABLE');
    assert.equal(await it.check(), 'same');
    assert.deepEqual(it.lines(), []);
    await it.test.clock.advance(minuteMs);
    assert.equal(await it.check(), 'changed');
    for (let polls = 0; polls < 3; polls += 1) {
      await it.test.clock.advance(hourMs);
      it.attempt('SERVER_UNREACHABLE');
      assert.equal(await it.check(), 'same');
    }
    assert.deepEqual(it.lines(), ['stop']);
  });

  it('tells the command why: state, age, limit, code and role', async () => {
    using it = site((out) => ({ onStale: shell(`env | grep ^WRIT_ | sort >> ${out}`) }));
    await it.test.clock.advance(61 * minuteMs);
    it.attempt('SIGNATURE_THRESHOLD', 'timestamp');
    await it.check();
    const told = it.lines().filter((line) => !line.startsWith('WRIT_SCRATCH_DIR='));
    assert.deepEqual(told, [
      'WRIT_MAX_STALE_SECONDS=3600',
      'WRIT_STALE_AGE_SECONDS=3660',
      'WRIT_STALE_CODE=SIGNATURE_THRESHOLD',
      'WRIT_STALE_ROLE=timestamp',
      'WRIT_STALE_STATE=refused',
    ]);
  });

  it('is an event of the history with the code, and a problem of the status as long as it lasts', async () => {
    using it = site(stop);
    await growOld(it);
    await it.check();
    const [entry] = readHistory(it.test.host.paths, { limit: 10 });
    assert.deepEqual(
      [entry?.result.trigger, entry?.result.outcome, entry?.reason],
      ['stale', 'degraded', 'onStale: exit 0'],
    );
    const problem = entry?.result.problems[0];
    assert.deepEqual([problem?.code, problem?.facts['code']], ['POLICY_STALE', 'SERVER_UNREACHABLE']);
    const codes = () =>
      statusReport(it.test.host, { ...facts, contact: it.contact.read() }).problems.map((one) => one.code);
    assert.deepEqual(codes(), ['POLICY_STALE']);
    it.attempt();
    await it.check();
    assert.deepEqual(codes(), []);
  });

  it('without a command is an event all the same, once', async () => {
    using it = site(() => ({}));
    await growOld(it);
    await it.check();
    await it.check();
    assert.deepEqual(
      readHistory(it.test.host.paths, { limit: 10 }).map((one) => one.result.problems[0]?.code),
      ['POLICY_STALE'],
    );
  });

  it('without a limit is no event, and the ledger is not even touched', async () => {
    using it = site(() => ({}));
    using unlimited = testHost();
    await unlimited.clock.advance(1000 * hourMs);
    assert.equal(await createStaleWatch('b').check(unlimited.host, it.contact, signal), 'same');
    assert.equal(fs.existsSync(unlimited.host.paths.ledger), false);
    assert.equal(await it.check(), 'same');
    assert.equal(fs.existsSync(it.test.host.paths.ledger), false);
  });
});

describe('a command that fails', () => {
  const failing = (out: string): Partial<FreshnessConfig> => ({
    onStale: shell(`echo try >> ${out}; echo no room; test -e ${out}.mended`),
  });

  it('is run again, later and later, until it exits with 0', async () => {
    using it = site(failing);
    await growOld(it);
    const triesAfter = async (byMs: number): Promise<number> => {
      await it.test.clock.advance(byMs);
      await it.check();
      return it.lines().length;
    };
    assert.deepEqual([await triesAfter(0), await triesAfter(29_000), await triesAfter(2000)], [1, 1, 2]);
    assert.deepEqual([await triesAfter(40_000), await triesAfter(21_000)], [2, 3]);
    fs.writeFileSync(`${it.test.directory}/x`, '');
    const [entry, ...others] = readHistory(it.test.host.paths, { limit: 10 });
    assert.deepEqual(
      [entry?.result.problems.map((one) => one.code), others],
      [['POLICY_STALE', 'STALE_COMMAND_FAILED'], []],
    );
    assert.match(entry?.reason ?? '', /^onStale: exit 1\nno room$/);
  });

  it('is tried at once after a restart, and left alone when it has succeeded', async () => {
    using it = site(failing);
    await growOld(it);
    await it.check();
    it.restart();
    it.attempt('SERVER_UNREACHABLE');
    await it.check();
    assert.equal(it.lines().length, 2);
    assert.equal(it.test.reopen().ledger.read().stale?.ranBootId, undefined);
  });

  it('has its output cut', async () => {
    using it = site(() => ({ onStale: shell('yes | head -c 100000; exit 3') }));
    await growOld(it);
    await it.check();
    const [entry] = readHistory(it.test.host.paths, { limit: 1 });
    assert.ok((entry?.reason?.length ?? 0) < 3000);
  });

  it('that does not exist or takes too long is a failure too, and ends nothing', async () => {
    for (const hook of [
      { run: ['/does/not/exist'], timeoutMs: 1000 } as const,
      { run: ['sleep', '60'], timeoutMs: 50 } as const,
    ]) {
      using it = site(() => ({ onStale: hook }));
      await growOld(it);
      await it.check();
      const [entry] = readHistory(it.test.host.paths, { limit: 1 });
      assert.equal(entry?.result.problems[1]?.code, 'STALE_COMMAND_FAILED');
    }
  });
});

describe('a restart', () => {
  it('does not run a command again that has succeeded in this boot', async () => {
    using it = site(stop);
    await growOld(it);
    await it.check();
    it.restart();
    it.attempt('SERVER_UNREACHABLE');
    await it.check();
    assert.deepEqual(it.lines(), ['stop']);
  });

  it('of the machine does: what the command did may not have outlived it', async () => {
    using it = site(stop);
    await growOld(it);
    await it.check();
    it.restart('boot-2');
    it.attempt('SERVER_UNREACHABLE');
    await it.check();
    assert.deepEqual(it.lines(), ['stop', 'stop']);
  });

  it('acts on nothing remembered before its first attempt has ended, or ten minutes have passed', async () => {
    using it = site(stop);
    await it.test.clock.advance(2 * hourMs);
    it.restart();
    assert.equal(await it.check(), 'same');
    assert.deepEqual(it.lines(), []);
    await it.test.clock.advance(11 * minuteMs);
    await it.check();
    assert.deepEqual(it.lines(), ['stop']);
  });

  it('knows that the period goes on, whatever the clock says', async () => {
    using it = site(stopAndStart);
    await growOld(it);
    await it.check();
    it.test.clock.setWallTime(Date.UTC(2026, 10, 1));
    it.restart();
    it.attempt('SERVER_UNREACHABLE');
    await it.check();
    assert.deepEqual(it.lines(), ['stop']);
    assert.deepEqual([it.freshness().state, it.freshness().overdueSinceMs !== undefined], ['stale', true]);
  });
});

describe('policy that is fresh again', () => {
  it('runs the other command once, after a verified answer and nothing less', async () => {
    using it = site(stopAndStart);
    await growOld(it);
    await it.check();
    it.attempt('METADATA_EXPIRED');
    await it.check();
    assert.deepEqual(it.lines(), ['stop']);
    it.attempt();
    assert.equal(await it.check(), 'changed');
    assert.equal(await it.check(), 'same');
    assert.deepEqual(it.lines(), ['stop', 'start']);
    assert.equal(it.test.host.ledger.read().stale, undefined);
    const [entry] = readHistory(it.test.host.paths, { limit: 1 });
    assert.deepEqual([entry?.result.outcome, entry?.result.problems], ['unchanged', []]);
    assert.match(entry?.reason ?? '', /^fresh again; .*onFresh: exit 0$/);
  });

  it('begins a new period the next time', async () => {
    using it = site(stopAndStart);
    for (let times = 0; times < 2; times += 1) {
      await growOld(it);
      await it.check();
      it.attempt();
      await it.check();
    }
    assert.deepEqual(it.lines(), ['stop', 'start', 'stop', 'start']);
  });

  it('has nothing to undo when the first command never succeeded', async () => {
    using it = site((out) => ({ onStale: shell('exit 1'), onFresh: shell(`echo start >> ${out}`) }));
    await growOld(it);
    await it.check();
    it.attempt();
    await it.check();
    assert.deepEqual([it.lines(), it.test.host.ledger.read().stale], [[], undefined]);
  });

  it('goes on trying the other command, over a restart and new trouble with the server', async () => {
    using it = site((out) => ({
      ...stop(out),
      onFresh: shell(`echo try >> ${out}; test -e ${out}.mended`),
    }));
    await growOld(it);
    await it.check();
    it.attempt();
    await it.check();
    assert.deepEqual(it.lines(), ['stop', 'try']);
    it.restart();
    it.attempt('SERVER_UNREACHABLE');
    await it.check();
    assert.deepEqual(it.lines(), ['stop', 'try', 'try']);
    assert.equal(it.freshness().overdueSinceMs, undefined);
  });

  it('is what an operator gets who takes the limit away', async () => {
    using it = site(stop);
    await growOld(it);
    await it.check();
    const host = it.test.reopen({ config: { freshness: { staleAfterMs: hourMs } } });
    await createStaleWatch('boot-1').check(host, it.contact, signal);
    assert.equal(host.ledger.read().stale, undefined);
  });
});
