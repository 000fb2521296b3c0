// A fleet server that reads the repository of its hosts, with the real program on both ends: the required release, a withdrawal that
// ends a wait, and an unreachable repository.
import assert from 'node:assert/strict';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { FleetSummary } from '../../../src/core/fleet/answers.js';
import { withdrawRelease } from '../../../src/publisher/release/withdraw.js';
import { startServer } from '../../../src/server/server.js';
import { writSite } from '../../kit/agent/writ-site.js';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { servedFleet } from '../../kit/fleet/served-fleet.js';
import { makeCertificate } from '../../kit/net/certificate.js';
import { changeOptions } from '../../kit/repository/sample-repository.js';

const workers = [{ name: 'dns', uses: ['dns-edge'], reset: { run: ['true'], confirms: true } }];

describe('a fleet server with a repository', longCase, () => {
  it('reports whether hosts run the required release, and ends a wait for a withdrawn one', async () => {
    using dir = tempDir();
    const site = writSite(dir, { sandbox: 'off', workers, host: { id: 'web-1' } });
    const { repository } = site;
    const followed = ['--repository', repository.url, '--root', repository.rootPath];
    await using fleet = await servedFleet(...followed, '--read-every', '1s');
    writeFileSync(dir.join('token'), await fleet.token('--for', 'hosts'));
    const url = fleet.url;
    const config = {
      ...JSON.parse(readFileSync(site.config, 'utf8')),
      fleet: { url, tokenFile: dir.join('token') },
    };
    writeFileSync(site.config, JSON.stringify(config));
    const summary = async (): Promise<FleetSummary> =>
      jsonOf(await runWrit(['fleet', 'status', '--store', fleet.store, '--json'])) as unknown as FleetSummary;
    const until = async (holds: (now: FleetSummary) => boolean): Promise<FleetSummary> => {
      for (let round = 0; round < 240; round++) {
        const now = await summary();
        if (holds(now)) return now;
        await pause(500);
      }
      return assert.fail(JSON.stringify(await summary()));
    };
    const wait = async (serial: number) => {
      const asked = ['fleet', 'wait', 'dns-edge', String(serial), '--within', '3m', '--json'];
      const run = await runWrit([...asked, '--store', fleet.store]);
      return { exitCode: run.exitCode, ...jsonOf(run) } as { exitCode: number; outcome?: string };
    };
    await repository.publish({ 'block.rpz': 'version 1\n' });
    assert.equal((await site.writ('pull')).exitCode, 0);
    await until(({ releases }) => releases[0]?.standing === 'current');
    const { sentence } = await summary();
    assert.match(sentence, /confirmed dns-edge 1, the release that should be in use/);
    assert.equal((await wait(1)).exitCode, 0);
    const never = await wait(7);
    assert.deepEqual([never.exitCode, never.outcome], [2, 'absent']);
    await repository.publish({ 'block.rpz': 'version 2\n' });
    assert.equal((await site.writ('pull')).exitCode, 0);
    await withdrawRelease({ bundle: 'dns-edge', serials: [2], reason: '' }, changeOptions(repository));
    const withdrawn = await until(({ releases }) => releases[0]?.standing === 'withdrawn');
    assert.equal(withdrawn.findings[0]?.code, 'WITHDRAWN_IN_USE');
    const { exitCode: inUse } = await wait(2);
    assert.equal(inUse, 4, 'its host confirmed it, and still runs it');
    assert.equal((await site.writ('pull')).exitCode, 0);
    const taken = await wait(2);
    assert.deepEqual([taken.exitCode, taken.outcome], [4, 'withdrawn']);
    const view = await fleet.token('--for', 'people', '--role', 'view');
    const release = (await (await fleet.get('/v1/releases/dns-edge/stable/2', view)).json()) as {
      signed: { standing: string; current: number }[];
    };
    assert.deepEqual([release.signed[0]?.standing, release.signed[0]?.current], ['withdrawn', 1]);
    renameSync(repository.directory, `${repository.directory}.away`);
    const unread = await until(({ repositories }) => repositories?.[0]?.failing !== undefined);
    assert.deepEqual(unread.repositories?.[0]?.releases.length, 1);
    const health = await fetch(new URL('/healthz', fleet.url));
    assert.equal(health.status, 200);
    assert.equal(((await health.json()) as { unread: string[] }).unread.length, 1);
  });

  it('reads a mirror over TLS by the configured authorities, after a mirror that they do not cover', async () => {
    using dir = tempDir();
    const { repository } = writSite(dir, { sandbox: 'off', workers, host: { id: 'web-1' } });
    await repository.publish({ 'block.rpz': 'version 1\n' });
    const serve = async (name: string) => {
      const tls = await makeCertificate(dir.path, name);
      const at = { repository: repository.directory, host: '127.0.0.1', port: 0, tls };
      return { ...tls, ...(await startServer(at)) };
    };
    const [known, unknown] = [await serve('known'), await serve('unknown')];
    try {
      const mirrors = ['--repository', `${unknown.url} ${known.url}`, '--root', repository.rootPath];
      await using fleet = await servedFleet(
        ...mirrors,
        '--repository-ca',
        known.certFile,
        '--read-every',
        '1s',
      );
      const read = async () => {
        const summary = jsonOf(await runWrit(['fleet', 'status', '--store', fleet.store, '--json']));
        return (summary as unknown as FleetSummary).repositories?.[0];
      };
      let now = await read();
      for (let look = 0; look < 240 && (now?.releases.length ?? 0) === 0; look++) {
        await pause(500);
        now = await read();
      }
      assert.deepEqual([now?.url, now?.failing], [`${unknown.url}/`, undefined]);
      assert.deepEqual(
        now?.releases.map(({ bundle, serial }) => [bundle, serial]),
        [['dns-edge', 1]],
      );
    } finally {
      await Promise.all([known.close(), unknown.close()]);
    }
  });

  it('refuses inconsistent options for repositories and roots', async () => {
    using dir = tempDir();
    const serve = (...flags: readonly string[]) =>
      runWrit([
        'fleet',
        'serve',
        '--store',
        dir.join('store'),
        '--listen',
        '127.0.0.1:0',
        ...flags,
        '--json',
      ]);
    const codeOf = async (...flags: readonly string[]) => jsonOf(await serve(...flags))['code'];
    assert.equal(await codeOf('--repository', 'https://a.example.net'), 'USAGE');
    const one = ['--repository', 'https://a.example.net', '--root', 'r'] as const;
    assert.equal(await codeOf(...one, '--repository-ca', dir.join('absent')), 'USAGE');
    assert.equal(await codeOf(...one, '--repository-ca', 'a', '--repository-ca', 'b'), 'USAGE');
    assert.equal(await codeOf('--repository-ca', 'a'), 'USAGE');
    assert.equal(await codeOf('--repository', 'https://a/ '.repeat(17), '--root', 'r'), 'USAGE');
    assert.equal(await codeOf('--repository', 'ftp://a.example.net', '--root', 'r'), 'CONFIG_INVALID');
    const postgres = await runWrit([
      ...['fleet', 'serve', '--store', 'postgres://127.0.0.1:1/x', '--json'],
      ...['--repository', 'https://a.example.net', '--root', 'r'],
    ]);
    assert.deepEqual([postgres.exitCode, jsonOf(postgres)['code']], [2, 'USAGE']);
  });
});
