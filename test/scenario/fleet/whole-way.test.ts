// From a token to `writ fleet wait`, with the real program on both ends: hosts that pull and report, and a host that refuses.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { type WritSite, writSite } from '../../kit/agent/writ-site.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type ServedFleet, servedFleet } from '../../kit/fleet/served-fleet.js';

const workers = [{ name: 'dns', uses: ['dns-edge'], reset: { run: ['true'], confirms: true } }];
const refusing = [
  { name: 'dns-edge', checks: [{ name: 'no second zone', run: ['grep', '-q', '1', '{bundle}/block.rpz'] }] },
];

/** @param name of the host; all hosts follow the same repository */
function hostOf(
  dir: TempDir,
  fleet: ServedFleet,
  name: string,
  keys: Readonly<Record<string, unknown>>,
): WritSite {
  const tokenFile = dir.join('token');
  return {
    ...writSite(dir, {
      sandbox: 'off',
      workers,
      host: { id: name },
      fleet: { url: fleet.url, tokenFile },
      ...keys,
    }),
  };
}

async function wait(fleet: ServedFleet, serial: number, ...flags: readonly string[]) {
  const run = await runWrit([
    ...['fleet', 'wait', 'dns-edge', String(serial), ...flags],
    ...['--within', '1s', '--store', fleet.store, '--json'],
  ]);
  return { exitCode: run.exitCode, ...jsonOf(run) } as {
    exitCode: number;
    refusedHosts?: { host: string; code: string }[];
  };
}

describe('hosts and their fleet', () => {
  it('agree on the hosts that confirmed a release, and those that refused it', async () => {
    await using fleet = await servedFleet();
    using one = tempDir();
    using two = tempDir();
    using three = tempDir();
    const token = await fleet.token('--for', 'hosts');
    const { repository, ...first } = hostOf(one, fleet, 'web-1', {});
    const same = { repository: repository.url, root: repository.rootPath };
    const hosts = [
      { ...first, repository },
      hostOf(two, fleet, 'web-2', same),
      hostOf(three, fleet, 'web-3', { ...same, bundles: refusing }),
    ];
    for (const dir of [one, two, three]) writeFileSync(dir.join('token'), token);
    await repository.publish({ 'block.rpz': 'version 1\n' });
    for (const host of hosts) assert.equal((await host.writ('pull')).exitCode, 0);
    assert.equal((await wait(fleet, 1)).exitCode, 0);
    await repository.publish({ 'block.rpz': 'version 2\n' });
    const pulls = await Promise.all(hosts.map((host) => host.writ('pull')));
    assert.deepEqual(
      pulls.map(({ exitCode }) => exitCode),
      [0, 0, 3],
    );
    const { exitCode, refusedHosts } = await wait(fleet, 2);
    assert.equal(exitCode, 3);
    assert.deepEqual(
      refusedHosts?.map(({ host, code }) => [host, code]),
      [['web-3', 'CHECK_FAILED']],
    );
    assert.equal((await wait(fleet, 2, '--share', '66%')).exitCode, 0);
    const status = await runWrit(['fleet', 'status', '--store', fleet.store]);
    assert.match(status.stdout, /^CRITICAL 1 host \(web-3\) refused dns-edge 2 \(CHECK_FAILED\)/);
  });
});
