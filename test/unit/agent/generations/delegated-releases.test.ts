import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import {
  readLastVoucher,
  readRecord,
  releasePath,
} from '../../../../src/agent/generations/release-records.js';
import type { Host } from '../../../../src/agent/state/host.js';
import type { CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import { recallFiles } from '../../../../src/core/tuf/trusted-set.js';
import { recallRoles } from '../../../../src/trust/find-target.js';
import { openTrustStore } from '../../../../src/trust/store/trust-store.js';
import { describeTrust } from '../../../../src/trust/trust-report.js';
import { cycleOn } from '../../../kit/agent/cycle-on.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';
import { dayMs, isoTime } from '../../../kit/repository/simulated-metadata.js';

const policy = (version: number) => ({ 'policy.yaml': `version: ${version}\n` });
const notified = (result: CycleResult) =>
  result.bundles.map((one) => [one.bundle, one.outcome, one.problem?.code]);

const factsOf = (result: CycleResult) => result.bundles[1]?.problem?.facts ?? {};

/** Team dns signs `dns-edge`, delegated through the role regions; the top-level targets sign `access`. */
async function teamHost(): Promise<TestHost> {
  const test = testHost({ bundles: [{ name: 'access' }, { name: 'dns-edge' }] });
  test.repository.delegate('targets', { name: 'regions', paths: ['dns-*/*'], terminating: true });
  test.repository.delegate('regions', { name: 'team/dns', paths: ['dns-edge/*'] });
  await test.publish('access', policy(1), { serial: 1 });
  await publishByTeam(test, 1);
  return test;
}

async function publishByTeam(test: TestHost, serial: number): Promise<void> {
  const { repository } = test;
  await test.publish('dns-edge', policy(serial), { serial });
  const path = 'dns-edge/stable.tar.br';
  const team = repository.signedOf('team/dns');
  team.targets[path] = repository.targets.targets[path];
  delete repository.targets.targets[path];
  bump(test);
}

/** The next version of the role of the team. */
function bump(test: TestHost): void {
  test.repository.signedOf('team/dns').version += 1;
  test.repository.publish();
}

describe('a release that a delegated role lists', () => {
  it('is activated like any other, and its record has the metadata of every role in the chain, byte for byte', async () => {
    using test = await teamHost();
    const result = await test.pull();
    assert.deepEqual(notified(result), [
      ['access', 'activated', undefined],
      ['dns-edge', 'activated', undefined],
    ]);
    assert.equal(test.read('dns-edge/policy.yaml'), 'version: 1\n');
    const { paths } = test.host;
    const [name] = fs.readdirSync(`${paths.archives}/dns-edge`);
    const record = readRecord(paths, 'dns-edge', name!);
    assert.deepEqual(record.vouchedBy, ['targets', 'regions', 'team/dns']);
    const directory = releasePath(paths, 'dns-edge', name!);
    const served = record.vouchedBy.map((role) => test.repository.file(test.repository.nameOf(role)));
    for (const [index, file] of ['targets.json', 'delegated-1.json', 'delegated-2.json'].entries()) {
      assert.deepEqual(fs.readFileSync(`${directory}/${file}`), served[index]);
    }
    assert.deepEqual(readLastVoucher(paths, 'dns-edge', name!), served[2]);
  });

  it('is readable from a record of a Writ without delegations, and needs the file that lists it', async () => {
    using test = await teamHost();
    await test.pull();
    const { paths } = test.host;
    const [name] = fs.readdirSync(`${paths.archives}/access`);
    const directory = releasePath(paths, 'access', name!);
    const record = JSON.parse(fs.readFileSync(`${directory}/record.json`, 'utf8'));
    delete record.vouchedBy;
    fs.writeFileSync(`${directory}/record.json`, JSON.stringify(record));
    assert.deepEqual(readRecord(paths, 'access', name!).vouchedBy, ['targets']);
    for (const vouchedBy of [[], 'targets', [1], Array.from({ length: 40 }, () => 'x')]) {
      fs.writeFileSync(`${directory}/record.json`, JSON.stringify({ ...record, vouchedBy }));
      throwsCode('STATE_DAMAGED', () => readRecord(paths, 'access', name!));
    }
    const [team] = fs.readdirSync(`${paths.archives}/dns-edge`);
    const teamDirectory = releasePath(paths, 'dns-edge', team!);
    // This file exceeds the memory limit, and the test does not need it.
    fs.truncateSync(`${teamDirectory}/delegated-1.json`, 2 ** 34);
    assert.ok(readLastVoucher(paths, 'dns-edge', team!).length > 0);
    fs.truncateSync(`${teamDirectory}/delegated-2.json`, 2 ** 34);
    throwsCode('STATE_DAMAGED', () => readLastVoucher(paths, 'dns-edge', team!));
    fs.rmSync(`${teamDirectory}/delegated-2.json`);
    throwsCode('STATE_DAMAGED', () => readLastVoucher(paths, 'dns-edge', team!));
  });

  it('is known without the network after it was seen once', async () => {
    using test = await teamHost();
    const name = ['dns-edge', 'stable'] as const;
    await test.host.client.refresh();
    assert.equal(test.host.client.knownTarget(...name), undefined, 'its role was never needed yet');
    await test.pull();
    test.repository.takeRequests();
    assert.equal(test.reopen().client.knownTarget(...name)?.release.serial, 1);
    assert.deepEqual(test.repository.takeRequests(), []);
  });
});

describe('the status of a host', () => {
  it('lists the available delegated roles, with and without an agent, and no outdated one', async () => {
    using test = await teamHost();
    await test.pull();
    const shown = (client: Pick<Host['client'], 'status'>): unknown =>
      Object.entries(client.status()?.delegated ?? {}).map(([role, { version }]) => [role, version]);
    const both = [
      ['regions', 1],
      ['team/dns', 2],
    ];
    assert.deepEqual(shown(test.host.client), both);
    const store = openTrustStore({
      directory: test.host.paths.trust,
      bootstrapRoot: test.host.config.root,
      fs: test.host.durable,
    });
    const offline = () =>
      describeTrust(recallRoles(recallFiles(store.loadRoot(), store.loadFiles()), store.loadDelegated));
    assert.deepEqual(shown({ status: offline }), both);
    bump(test);
    await test.host.client.refresh();
    assert.deepEqual(shown(test.host.client), both.slice(0, 1));
    assert.deepEqual(shown({ status: offline }), both.slice(0, 1));
  });
});

describe('a faulty delegated role', () => {
  const troubles: [name: string, code: string, harm: (test: TestHost) => void][] = [
    [
      'has expired',
      'METADATA_EXPIRED',
      (test) => {
        test.repository.signedOf('team/dns').expires = isoTime(test.clock.nowMs() - dayMs);
        bump(test);
      },
    ],
    [
      'is not on the server',
      'METADATA_MISSING',
      (test) => {
        bump(test);
        test.repository.withhold(test.repository.nameOf('team/dns'));
      },
    ],
    [
      'is not in the snapshot',
      'METADATA_MIX',
      (test) => {
        const { repository } = test;
        repository.publish();
        repository.rotate('snapshot');
        delete repository.snapshot.meta['team/dns.json'];
        repository.bumpSnapshot();
      },
    ],
    [
      'is signed by another key',
      'SIGNATURE_WRONG_KEY',
      (test) => {
        test.repository.signers.set('team/dns', test.repository.keys.targets);
        bump(test);
      },
    ],
    [
      'has another version than the snapshot lists',
      'METADATA_MIX',
      (test) => {
        bump(test);
        test.repository.alter('team/dns', (signed) => Object.assign(signed, { version: 99 }));
      },
    ],
  ];
  for (const [name, code, harm] of troubles) {
    it(`that ${name} blocks its own bundles and no other`, async () => {
      using test = await teamHost();
      await test.pull();
      await test.publish('access', policy(2), { serial: 2 });
      harm(test);
      const result = await test.pull();
      assert.deepEqual(notified(result), [
        ['access', 'activated', undefined],
        ['dns-edge', 'failed', code],
      ]);
      assert.equal(factsOf(result)['role'], 'team/dns');
      assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
      assert.equal(test.read('dns-edge/policy.yaml'), 'version: 1\n');
      assert.deepEqual(test.host.refusals.read().refusals, [], 'nothing about it is remembered');
    });
  }

  it('is reported with name and age when it expires and nothing else changes, after two requests', async () => {
    using test = await teamHost();
    test.repository.signedOf('team/dns').expires = isoTime(test.clock.nowMs() + 3 * dayMs);
    bump(test);
    await test.pull();
    test.repository.takeRequests();
    const unchanged = await test.pull();
    assert.deepEqual(notified(unchanged), [
      ['access', 'unchanged', undefined],
      ['dns-edge', 'unchanged', undefined],
    ]);
    assert.equal(test.repository.takeRequests().length, 2);
    test.clock.advance(4 * dayMs);
    for (const host of [test.host, test.reopen()]) {
      const expired = await cycleOn(host);
      assert.deepEqual(notified(expired), [
        ['access', 'unchanged', undefined],
        ['dns-edge', 'failed', 'METADATA_EXPIRED'],
      ]);
      const { role, expiredForMs } = factsOf(expired);
      assert.deepEqual([role, expiredForMs], ['team/dns', dayMs]);
      assert.deepEqual(
        test.repository.takeRequests().map((request) => request.replace(' if-none-match', '')),
        ['GET metadata/2.root.json', 'GET metadata/timestamp.json'],
      );
    }
    assert.equal(test.read('dns-edge/policy.yaml'), 'version: 1\n');
    await rejectsCode('METADATA_EXPIRED', test.host.client.target('dns-edge', 'stable'));
  });
});
