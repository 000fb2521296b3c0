// Pipelines that require settled hosts of a fleet: a wait for them, and a promotion.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import type { BakeState } from '../../../src/core/fleet/report.js';
import { digestHex } from '../../../src/core/names.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf, runWrit, type WritRun } from '../../kit/cli/run-writ.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { bundleAt } from '../../kit/fleet/fleet-bench.js';
import { servedFleet } from '../../kit/fleet/served-fleet.js';
import type { SignedHost } from '../../kit/fleet/signed-host.js';
import { sampleRepository } from '../../kit/repository/sample-repository.js';

/** Reports serial 1 of `dns-edge` on `canary`. */
async function report(host: SignedHost, bake: BakeState | undefined, manifest?: string): Promise<void> {
  const { active } = bundleAt(1);
  assert.ok(active);
  const release = { ...active, ...(bake && { bake }), ...(manifest !== undefined && { manifest }) };
  const bundle = { bundle: 'dns-edge', channel: 'canary', active: release };
  assert.equal((await host.report({ bundles: [bundle] })).status, 200);
}

describe('hosts with a release that settles', () => {
  it('end a wait with --settled after its bake time', longCase, async () => {
    await using fleet = await servedFleet();
    const connection = await fleet.roleFlags('view');
    const [one, two] = [await fleet.host('web-1'), await fleet.host('web-2')];
    await report(one, 'settled');
    await report(two, 'baking');
    const wait = (...more: readonly string[]): Promise<WritRun> =>
      runWrit(['fleet', 'wait', 'dns-edge', '1', '--channel', 'canary', ...connection, ...more]);
    assert.equal((await wait()).exitCode, 0);
    const baking = await wait('--settled', '--within', '10ms');
    assert.equal(baking.exitCode, 1, baking.stdout);
    assert.match(baking.stdout, /1 of 2 done, 2 needed; 1 in their bake time/);
    assert.equal((await wait('--settled', '--share', '50%')).exitCode, 0);
    await report(two, 'unobserved');
    const settled = await wait('--settled', '--json');
    assert.equal(settled.exitCode, 0, settled.stdout);
    const counts = { confirmed: 2, notified: 0, unobserved: 1, baking: 0, failed: 0, unknown: 0 };
    assert.deepEqual(jsonOf(settled)['settled'], counts);
    const status = await runWrit(['fleet', 'status', ...connection]);
    assert.match(status.stdout, /dns-edge +canary +1 +2 +0 +0 +1 settled, 1 settled unobserved/);
    const page = await (
      await fleet.get('/releases/dns-edge/canary/1', await fleet.token('--for', 'people'))
    ).text();
    assert.match(page, /settled, not observed/);
  });

  it('permit the promotion of a release, and too few of them prevent it', longCase, async () => {
    await using fleet = await servedFleet();
    const connection = (await fleet.roleFlags('view')).map((one) => (one === '--url' ? '--fleet' : one));
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    const { release } = await repository.publish({ f: '1' }, { channel: 'canary' });
    const manifest = digestHex(release.manifest.digest);
    const folders = ['--repository', repository.directory, '--keys', repository.keys];
    const names = ['--bundle', 'dns-edge', '--from', 'canary', '--to', 'stable', '--json'];
    const promote = (...more: readonly string[]): Promise<WritRun> =>
      runWrit(['promote', ...folders, ...names, '--require-settled', '95%', ...more]);
    const serials = async (): Promise<unknown> => {
      const run = await runWrit(['repo', 'status', '--repository', repository.directory, '--json']);
      return (jsonOf(run)['releases'] as { channel: string }[]).map(({ channel }) => channel);
    };
    const withoutHosts = await promote(...connection);
    assert.deepEqual(
      [withoutHosts.exitCode, jsonOf(withoutHosts)['code']],
      [3, 'RELEASE_NOT_SETTLED'],
      withoutHosts.stdout,
    );
    const [one, two] = [await fleet.host('web-1'), await fleet.host('web-2')];
    await report(one, 'settled', manifest);
    await report(two, 'baking', manifest);
    const early = await promote(...connection);
    assert.deepEqual([early.exitCode, jsonOf(early)['code']], [3, 'RELEASE_NOT_SETTLED'], early.stdout);
    const { expected, actual, of } = jsonOf(early)['facts'] as Record<string, number>;
    assert.deepEqual([expected, actual, of], [2, 1, 2]);
    assert.deepEqual(await serials(), ['canary']);
    await report(two, 'none', manifest);
    const preview = await promote(...connection, '--dry-run');
    assert.deepEqual([preview.exitCode, jsonOf(preview)['hosts']], [0, { of: 2, done: 2, needed: 2 }]);
    const promoted = await promote(...connection);
    assert.deepEqual([promoted.exitCode, jsonOf(promoted)['outcome']], [0, 'promoted'], promoted.stdout);
    assert.deepEqual(await serials(), ['canary', 'stable']);
    const again = await promote(...connection);
    assert.deepEqual([again.exitCode, jsonOf(again)['outcome']], [0, 'nothing-new'], again.stdout);
  });

  it('with another release of the serial prevent the promotion', async () => {
    await using fleet = await servedFleet();
    const connection = (await fleet.roleFlags('view')).map((one) => (one === '--url' ? '--fleet' : one));
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    await repository.publish({ f: '1' }, { channel: 'canary' });
    await report(await fleet.host('web-1'), 'settled', '0'.repeat(64));
    const folders = ['--repository', repository.directory, '--keys', repository.keys];
    const names = ['--bundle', 'dns-edge', '--from', 'canary', '--to', 'stable', '--json'];
    const run = await runWrit(['promote', ...folders, ...names, '--require-settled', '95%', ...connection]);
    assert.deepEqual([run.exitCode, jsonOf(run)['code']], [3, 'RELEASE_NOT_SETTLED'], run.stdout);
    assert.match(run.stdout, /0 of 1 hosts .* hosts report another release of this serial/);
  });

  it('are not counted by a server of an older version, which a command reports as FLEET_TOO_OLD', async () => {
    const { active: _, ...facts } = {
      active: 0,
      of: 1,
      confirmed: 1,
      notified: 0,
      unconfirmed: 0,
      silent: 0,
    };
    const older = {
      ...{ schema: 1, type: 'fleet.wait', atMs: 1, ...facts },
      ...{ refused: 0, refusedHosts: [], excepted: 0, later: 0, elsewhere: 0 },
    };
    const server = createServer((_request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(older));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    using dir = tempDir();
    const tokenFile = dir.join('token');
    writeFileSync(tokenFile, `writ_people_${'t'.repeat(40)}\n`, { mode: 0o600 });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const asked = ['fleet', 'wait', 'dns', '1', '--url', url, '--token-file', tokenFile, '--json'];
    try {
      const run = await runWrit([...asked, '--settled']);
      assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'FLEET_TOO_OLD'], run.stdout);
    } finally {
      server.close();
    }
  });
});
