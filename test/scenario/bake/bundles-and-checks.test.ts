// The extent of an automatic rollback after a failure in the bake time: by bundle, by set, and only to a release that the checks of
// the host accept.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createBakeTurn } from '../../../src/agent/bake/bake-turn.js';
import { keepActive } from '../../../src/agent/bake/keep-release.js';
import { exclusiveAlone } from '../../../src/agent/job/exclusive.js';
import { newCycleId } from '../../../src/agent/job/progress.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import type { CheckConfig } from '../../../src/core/config/config.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';
import { setLedger } from '../../kit/host/set-ledger.js';
import { refuses } from '../../kit/workers/scripted-driver.js';

const second = 1000;
const two = [{ name: 'access' }, { name: 'dns' }];

async function publishBoth({ test }: BakingHost, serial: number): Promise<void> {
  await test.publish('access', { f: String(serial) }, { serial });
  await test.publish('dns', { f: String(serial) }, { serial });
}

function both({ test }: BakingHost): string[] {
  return [test.read('access/f'), test.read('dns/f')];
}

function refusing(path: string): CheckConfig {
  return {
    kind: 'run',
    name: 'gate',
    run: ['sh', '-c', `test ! -e ${path}`],
    timeoutMs: 60_000,
    sandbox: 'off',
  };
}

describe('a worker that dies within the bake time of two bundles', longCase, () => {
  it('causes a rollback of the bundle that it uses, and not of the other', async () => {
    using host = bakingHost(supervisedDriver(['a']), {
      bundles: two,
      groups: { app: { config: { uses: ['access'] } } },
    });
    await publishBoth(host, 1);
    await host.test.pull();
    await host.pass(bakeMs + 10 * second);
    await publishBoth(host, 2);
    await host.test.pull();
    await host.pass(10 * second);
    host.driver.replace('a');
    await host.pass(2 * second);
    assert.deepEqual(both(host), ['1', '2']);
    await host.pass(bakeMs);
    assert.equal(host.test.host.ledger.read().settledReleases?.['dns']?.[0]?.serial, 2);
  });

  it('causes a rollback of both when it uses both, because either can be the cause', async () => {
    using host = bakingHost(supervisedDriver(['a']), {
      bundles: two,
      groups: { app: { config: { uses: ['access', 'dns'] } } },
    });
    await publishBoth(host, 1);
    await host.test.pull();
    await host.pass(bakeMs + 10 * second);
    await publishBoth(host, 2);
    await host.test.pull();
    await host.pass(10 * second);
    host.driver.replace('a');
    await host.pass(2 * second);
    assert.deepEqual(both(host), ['1', '1']);
  });

  it('causes a rollback of the complete set of its bundle, to the releases that settled together', async () => {
    using host = bakingHost(supervisedDriver(['a']), {
      bundles: two,
      groups: { app: { config: { uses: ['access'] } } },
      config: { together: [['access', 'dns']] },
    });
    await publishBoth(host, 1);
    await host.test.pull();
    await host.pass(bakeMs + 10 * second);
    await host.test.publish('dns', { f: '2' }, { serial: 2 });
    await host.test.pull();
    await host.pass(bakeMs / 2);
    await host.test.publish('access', { f: '2' }, { serial: 2 });
    await host.test.pull();
    // The bake time of dns 2 is over before that of access 2, and the set has not settled by that.
    await host.pass(bakeMs / 2 + 10 * second);
    assert.equal(host.test.host.ledger.read().settledReleases?.['dns']?.[0]?.serial, 1);
    const facts = { version: '', state: 'run', contact: { contact: {} }, problems: [] } as const;
    const { bundles } = statusReport(host.test.host, facts);
    assert.deepEqual(
      bundles.map(({ bundle, bake }) => [bundle, bake?.state, bake?.waitsFor]),
      [
        ['access', 'baking', undefined],
        ['dns', 'baking', { what: 'set', of: ['access'] }],
      ],
    );
    host.driver.replace('a');
    await host.pass(2 * second);
    assert.deepEqual(both(host), ['1', '1']);
  });
});

describe('an automatic rollback', longCase, () => {
  it('does not activate a release that a check refuses, and is retried after a minute', async () => {
    using host = bakingHost(supervisedDriver(['a']));
    const gate = join(host.test.directory, 'closed');
    const bundle = host.test.host.config.bundles[0];
    assert.ok(bundle);
    const config = { bundles: [{ ...bundle, checks: [refusing(gate)] }] };
    await host.take(1);
    await host.pass(bakeMs + 10 * second);
    await host.take(2);
    const checked = host.test.reopen({ config });
    fs.writeFileSync(gate, '');
    host.driver.replace('a');
    await host.pass(2 * second, checked);
    assert.deepEqual([host.active(), host.restores.length], ['2', 0]);
    assert.equal(checked.ledger.read().bakes?.['access']?.failure?.cause, 'WORKER_DIED');
    fs.rmSync(gate);
    await host.pass(62 * second, checked);
    assert.equal(host.active(), '1');
  });

  it('does not activate a tree that was changed on disk', async () => {
    using host = bakingHost(supervisedDriver(['a']));
    await host.take(1);
    await host.pass(bakeMs + 10 * second);
    const file = fs.realpathSync(join(host.test.host.paths.current, 'access', 'f'));
    await host.take(2);
    fs.writeFileSync(file, 'x');
    host.driver.replace('a');
    await host.pass(2 * second);
    assert.deepEqual([host.active(), host.restores.length], ['2', 0]);
  });

  it('does not count workers that died during a refused swap against the release before', async () => {
    using host = bakingHost(supervisedDriver(['a']));
    await host.take(1);
    await host.pass(bakeMs + 10 * second);
    await host.take(2);
    await host.pass(10 * second);
    host.driver.workers.set('a', (generation) => {
      if (generation !== 3) return { kind: 'confirmed', text: 'ok' };
      host.driver.replace('a');
      return refuses('rule 7')();
    });
    assert.equal((await host.take(3)).outcome, 'rolled-back');
    await host.pass(bakeMs);
    assert.deepEqual([host.active(), host.restores.length], ['2', 0]);
  });
});

describe('an observation of the workers', longCase, () => {
  it('is discarded when a restore happened before it was recorded', async () => {
    using host = bakingHost(supervisedDriver(['a']));
    const { test, driver } = host;
    await host.take(1);
    await host.pass(bakeMs + 10 * second);
    await host.take(2);
    await host.pass(10 * second);
    driver.workers.set('a', (generation) => {
      if (generation !== 3) return { kind: 'confirmed', text: 'ok' };
      driver.replace('a');
      return refuses('rule 7')();
    });
    await test.publish('access', { f: '3' }, { serial: 3 });
    const turn = createBakeTurn({
      ...{ host: () => test.host, stop: new AbortController().signal, onNews: () => undefined },
      onRestored: () => undefined,
      exclusive: async (job) => {
        await test.pull();
        return exclusiveAlone(job);
      },
    });
    await turn();
    await host.pass(bakeMs);
    assert.deepEqual([host.active(), host.restores.length], ['2', 0]);
  });
});

describe('a release that an operator keeps', longCase, () => {
  it('counts as settled at once, with evidence of failure or without', async () => {
    using host = bakingHost(supervisedDriver(['a']));
    await host.take(1);
    await host.pass(bakeMs + 10 * second);
    await host.take(2);
    keepActive(host.test.host, { outcome: 'activated' }, 'anna');
    const { bakes, settledReleases } = host.test.host.ledger.read();
    assert.deepEqual([bakes, settledReleases?.['access']?.[0]?.serial], [undefined, 2]);
    host.driver.replace('a');
    await host.pass(bakeMs);
    assert.deepEqual([host.active(), host.restores.length], ['2', 0]);
  });

  it('keeps its bake time when the pull failed', async () => {
    using host = bakingHost(supervisedDriver(['a']));
    await host.take(1);
    keepActive(host.test.host, { outcome: 'failed' }, 'anna');
    assert.equal(host.test.host.ledger.read().bakes?.['access']?.serial, 1);
  });
});

describe('a ledger that was lost and rebuilt', longCase, () => {
  it('starts the bake time of its release, because the time of the activation is unknown', async () => {
    using host = bakingHost(supervisedDriver(['a']));
    await host.take(1);
    const lost = {
      bakes: undefined,
      settledReleases: undefined,
      unsettled: undefined,
      activatedAtMs: undefined,
    };
    setLedger(host.test.host.ledger, lost);
    await host.test.clock.advance(3 * bakeMs);
    await startHost(host.test.reopen(), { cycle: newCycleId(), signal: new AbortController().signal });
    const { bakes, settledReleases } = host.test.reopen().ledger.read();
    assert.deepEqual([bakes?.['access']?.serial, settledReleases], [1, {}]);
  });
});
