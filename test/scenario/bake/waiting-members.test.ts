// A member of a set after the end of its own bake time: the host observes it until the complete set has settled.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import { readHistory } from '../../../src/agent/job/history.js';
import { newCycleId } from '../../../src/agent/job/progress.js';
import { noteProbeAnswers } from '../../../src/agent/notify/repeat-probe.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { probeGapMs } from '../../../src/agent/settled/probe-gap-rules.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import type { HookVerdict } from '../../../src/core/cycle/hook-verdict.js';
import type { BundleStatus } from '../../../src/core/status/bundle-status.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';
import { setLedger } from '../../kit/host/set-ledger.js';

const second = 1000;
const wrong: HookVerdict = { kind: 'refused', reason: 'exit 1' };

/** The worker `a` uses dns, and `b` uses access. */
function hostWithSet(driver = supervisedDriver(['a'])): BakingHost {
  const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min: 1 };
  return bakingHost(driver, {
    bundles: [{ name: 'access' }, { name: 'dns' }],
    groups: {
      app: { config: { uses: ['dns'], reset } },
      other: { driver: supervisedDriver(['b']), config: { uses: ['access'] } },
    },
    config: { together: [['access', 'dns']] },
  });
}

async function take({ test }: BakingHost, releases: Readonly<Record<string, number>>): Promise<void> {
  for (const [bundle, serial] of Object.entries(releases))
    await test.publish(bundle, { f: String(serial) }, { serial });
  assert.equal((await test.pull()).outcome, 'activated');
}

/** Release 1 of both has settled; the bake time of dns 2 is over, and half of that of access 2. */
async function waitingMember(host = hostWithSet()): Promise<BakingHost> {
  await take(host, { access: 1, dns: 1 });
  await host.pass(bakeMs + 10 * second);
  await take(host, { dns: 2 });
  await host.pass(bakeMs / 2);
  await take(host, { access: 2 });
  await host.pass(bakeMs / 2 + 10 * second);
  return host;
}

const activeIn = ({ test }: BakingHost): string[] => [test.read('access/f'), test.read('dns/f')];

function statusOf({ test }: BakingHost, bundle: string): BundleStatus['bake'] {
  const facts = { version: '', state: 'run', contact: { contact: {} }, problems: [] } as const;
  return statusReport(test.host, facts).bundles.find((one) => one.bundle === bundle)?.bake;
}

function settledIn({ test }: BakingHost): string[] {
  const { settledReleases = {} } = test.host.ledger.read();
  return Object.entries(settledReleases).flatMap(([bundle, all]) =>
    all.map((one) => `${bundle} ${one.serial}`),
  );
}

describe('a member of a set after its own bake time', () => {
  it('is rolled back with the set when its worker crashes', async () => {
    using host = await waitingMember();
    host.driver.replace('a');
    await host.pass(2 * second);
    assert.deepEqual([activeIn(host), host.restores.length], [['1', '1'], 1]);
    const [problem] = host.restores[0]?.result.problems ?? [];
    assert.match(problem?.message ?? '', /^dns 2 failed .* app\/a ended abnormally once/);
  });

  it('is rolled back with the set when its probe fails six times', longCase, async () => {
    using host = await waitingMember();
    const { test } = host;
    const [group] = test.host.groups;
    assert.ok(group);
    const { together, bundles } = test.host.config;
    assert.equal(
      probeGapMs({ together, bundles }, test.host.ledger.read(), group.config, undefined),
      bakeMs / 10,
    );
    for (let at = 0; at < 6; at += 1) {
      const about = new Map(
        Object.entries(test.host.ledger.read().workers).filter(([key]) => key === 'app/a'),
      );
      const report = { verdict: wrong, text: '', durationMs: 0 };
      noteProbeAnswers(test.host, group, [{ about, report, isOverdue: false }]);
      await host.pass(10 * second);
    }
    assert.deepEqual(activeIn(host), ['1', '1']);
  });

  it('is rolled back with the set after a restart of the agent', longCase, async () => {
    using host = await waitingMember();
    const { test } = host;
    const reopened = test.reopen();
    await startHost(reopened, { cycle: newCycleId(), signal: new AbortController().signal });
    await host.pass(10 * second, reopened);
    host.driver.replace('a');
    await host.pass(2 * second, reopened);
    assert.deepEqual(activeIn(host), ['1', '1']);
  });

  it('has its full bake time again after an upgrade from a version that ended it', async () => {
    using host = await waitingMember();
    const { access } = host.test.host.ledger.read().bakes ?? {};
    assert.ok(access);
    setLedger(host.test.host.ledger, { bakes: { access } });
    const reopened = host.test.reopen();
    await startHost(reopened, { cycle: newCycleId(), signal: new AbortController().signal });
    await host.pass(bakeMs - 10 * second, reopened);
    assert.deepEqual(Object.keys(reopened.ledger.read().bakes ?? {}), ['access', 'dns']);
    await host.pass(20 * second, reopened);
    assert.equal(reopened.ledger.read().bakes, undefined);
  });

  it('prevents the settling of the set while its worker is stopped', longCase, async () => {
    let isStopped = false;
    const liveness = async () => (isStopped ? ('dead' as const) : ('alive' as const));
    using host = await waitingMember(hostWithSet(Object.assign(supervisedDriver(['a']), { liveness })));
    isStopped = true;
    host.driver.processes.delete('a');
    await host.pass(bakeMs);
    assert.deepEqual(settledIn(host), ['access 1', 'dns 1']);
    assert.equal(statusOf(host, 'dns')?.waitsFor?.what, 'worker');
    assert.deepEqual(statusOf(host, 'access')?.waitsFor, { what: 'set', of: ['dns'] });
  });

  it('settles in the same moment as the last member, and the history names both releases', async () => {
    using host = await waitingMember();
    await host.pass(bakeMs / 2 - 10 * second);
    assert.deepEqual(settledIn(host), ['access 1', 'dns 1']);
    await host.pass(2 * second);
    assert.deepEqual(settledIn(host), ['access 2', 'access 1', 'dns 2', 'dns 1']);
    const { test } = host;
    const [access, dns] = [statusOf(host, 'access'), statusOf(host, 'dns')];
    assert.deepEqual([access?.state, access?.atMs, dns?.state, dns?.atMs].map(String), [
      ...['settled', String(test.clock.nowMs()), 'settled', String(test.clock.nowMs())],
    ]);
    const reasons = readHistory(test.host.paths, { limit: 20 }).flatMap(({ reason = '' }) =>
      reason.startsWith('settled') ? [reason] : [],
    );
    assert.deepEqual(reasons.sort(), ['settled: access 1, dns 1', 'settled: access 2, dns 2']);
  });

  it('settles unobserved with the set when one member was not observed', async () => {
    using host = await waitingMember();
    const { bakes = {} } = host.test.host.ledger.read();
    const { access } = bakes;
    assert.ok(access);
    const startedAtMs = access.startedAtMs - 3 * bakeMs;
    setLedger(host.test.host.ledger, { bakes: { ...bakes, access: { ...access, startedAtMs } } });
    await startHost(host.test.reopen(), { cycle: newCycleId(), signal: new AbortController().signal });
    const { settledReleases = {} } = host.test.reopen().ledger.read();
    const newest = ['access', 'dns'].map((name) => settledReleases[name]?.[0]);
    assert.deepEqual(
      newest.map((one) => [one?.serial, one?.isObserved]),
      [
        [2, false],
        [2, false],
      ],
    );
  });

  it('waits for the other member in the status, which counts the exits of its worker', async () => {
    using host = await waitingMember();
    assert.deepEqual(statusOf(host, 'dns')?.waitsFor, { what: 'set', of: ['access'] });
    host.driver.replace('a', 'unrecorded');
    await host.live(4 * second);
    const { state, ends } = statusOf(host, 'dns') ?? {};
    assert.deepEqual([state, ends], ['baking', [{ worker: 'app/a', abnormal: 0, unexplained: 1 }]]);
  });

  it('never settles when a newer release of its bundle becomes active first', longCase, async () => {
    using host = await waitingMember();
    await take(host, { dns: 3 });
    await host.pass(bakeMs - 10 * second);
    assert.deepEqual(settledIn(host), ['access 1', 'dns 1'], 'access 2 waits for dns 3');
    await host.pass(20 * second);
    assert.deepEqual(settledIn(host), ['access 2', 'access 1', 'dns 3', 'dns 1']);
  });

  it('never settles when an operator rolls the set back', longCase, async () => {
    using host = await waitingMember();
    const { signal } = new AbortController();
    await rollBack(host.test.host, { by: 'anna', signal });
    assert.deepEqual(activeIn(host), ['1', '1']);
    assert.equal(host.test.host.ledger.read().bakes, undefined);
    await host.pass(bakeMs);
    assert.deepEqual(settledIn(host), ['access 1', 'dns 1']);
  });
});
