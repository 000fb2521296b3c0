// The commands of a fleet with a real server, from the first token to a wait that ends by a refusal.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { TokenLine } from '../../../src/core/fleet/token-answers.js';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { skippedPauses } from '../../kit/clock/skipped-pauses.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { bundleAt } from '../../kit/fleet/fleet-bench.js';
import { servedFleet } from '../../kit/fleet/served-fleet.js';
import { makeCertificate } from '../../kit/net/certificate.js';

const refused = { serial: 42, state: 'refused', code: 'CHECK_FAILED', atMs: 5, line: 'line 7: no' } as const;
const wait = (...args: readonly string[]) => runWrit(['fleet', 'wait', 'dns', '42', ...args, '--json']);
/** Between two queries of a wait. */
const pauseMs = 2000;

describe('the commands of a fleet', () => {
  it('report the releases of hosts, and end a wait with the exit code of its outcome', longCase, async () => {
    await using fleet = await servedFleet();
    const connection = await fleet.roleFlags('view');
    assert.deepEqual(
      [(await wait(...connection)).exitCode, (await runWrit(['fleet', 'status', ...connection])).exitCode],
      [2, 1],
    );
    const [one, two] = [await fleet.host('web-1', { site: 'fra' }), await fleet.host('web-2')];
    await one.report({ bundles: [bundleAt(42)] });
    await two.report({ bundles: [bundleAt(42)] });
    const reached = await wait(...connection);
    assert.equal(reached.exitCode, 0, reached.stdout);
    assert.equal(jsonOf(reached)['done'], 2);
    const well = await runWrit(['fleet', 'status', '--store', fleet.store]);
    assert.match(well.stdout, /^OK All 2 hosts confirmed dns 42\.$/m);
    assert.equal(well.exitCode, 0);
    await two.report({ bundles: [bundleAt(41, { offered: refused })] });
    const ended = await wait(...connection);
    assert.equal(ended.exitCode, 3);
    assert.deepEqual(jsonOf(ended)['refusedHosts'], [{ host: 'web-2', key: two.key, code: 'CHECK_FAILED' }]);
    assert.equal((await wait(...connection, '--share', '50%')).exitCode, 0);
    const status = await runWrit(['fleet', 'status', ...connection]);
    assert.equal(status.exitCode, 2);
    assert.match(status.stdout, /^CRITICAL 1 host \(web-2\) refused dns 42 \(CHECK_FAILED\)/);
    assert.ok(!status.stdout.includes('line 7'));
    assert.match(
      (await runWrit(['fleet', 'status', ...(await fleet.roleFlags('detail'))])).stdout,
      /line 7: no/,
    );
    await one.report({ bundles: [bundleAt(43)] });
    assert.equal((await wait(...connection)).exitCode, 4);
    await one.report({ bundles: [bundleAt(41)] });
    await two.report({ bundles: [bundleAt(41)] });
    assert.equal((await wait(...connection, '--within', '10ms')).exitCode, 1);
  });

  it(
    'wait for the newest release without its serial, and keep that serial when a newer release appears',
    longCase,
    async () => {
      await using fleet = await servedFleet();
      const latest = (...more: readonly string[]) =>
        runWrit(['fleet', 'wait', 'dns', '--latest', '--store', fleet.store, ...more]);
      const unknown = await latest();
      assert.match(unknown.stderr, /the fleet server knows no release of dns stable/);
      assert.equal(unknown.exitCode, 2);
      const [one, two] = [await fleet.host('web-1'), await fleet.host('web-2')];
      await one.report({ bundles: [bundleAt(42)] });
      await two.report({ bundles: [bundleAt(41, { offered: refused })] });
      const newest = await latest();
      assert.match(newest.stdout, /^OUT OF REACH dns 42: /m);
      assert.match(newest.stderr, /dns stable 42 is the newest/);
      assert.match(newest.stderr, /reads no repository: a release that no host reports yet is unknown/);
      const clock = skippedPauses(pauseMs, async (time) => {
        await two.report({ bundles: [bundleAt(43)] });
        await time.advance(pauseMs);
      });
      await two.report({ bundles: [bundleAt(41)] });
      const args = ['fleet', 'wait', 'dns', '--latest', '--store', fleet.store];
      const superseded = await runWrit(args, { clock });
      assert.deepEqual([superseded.exitCode, superseded.stdout.split(':')[0]], [4, 'SUPERSEDED dns 42']);
      await one.report({ bundles: [bundleAt(43)] });
      const now = await latest('--json');
      assert.deepEqual([now.exitCode, jsonOf(now)['serial']], [0, 43]);
      for (const wrong of [['dns'], ['dns', '42', '--latest']]) {
        const { exitCode, stderr } = await runWrit(['fleet', 'wait', ...wrong, '--store', fleet.store]);
        assert.deepEqual([exitCode, /give .*--latest/.test(stderr)], [2, true]);
      }
    },
  );

  it('list the hosts that ran or refused a release, and the releases of a host', async () => {
    await using fleet = await servedFleet();
    const one = await fleet.host('web-1');
    const two = await fleet.host('web-2');
    await one.report({ bundles: [bundleAt(42)] });
    await two.report({ bundles: [bundleAt(41, { offered: refused })] });
    const [view, store] = [await fleet.roleFlags('view'), ['--store', fleet.store]];
    for (const connection of [view, store]) {
      const shown = await runWrit(['fleet', 'history', 'dns', '42', ...connection]);
      assert.match(shown.stdout, /FOUND {5}2 intervals\n/);
      assert.match(shown.stdout, /^ {2}web-1 +[0-9a-f]{12} +confirmed .* now$/m);
      assert.match(shown.stdout, /^ {2}web-2 +[0-9a-f]{12} +refused +CHECK_FAILED .* now$/m);
      const host = jsonOf(await runWrit(['fleet', 'history', '--host', 'web-2', ...connection, '--json']));
      const intervals = host['intervals'] as readonly { serial: number; kind: string }[];
      assert.deepEqual(intervals.map(({ serial, kind }) => [serial, kind]).toSorted(), [
        [41, 'active'],
        [42, 'refused'],
      ]);
    }
    const cut = jsonOf(await runWrit(['fleet', 'history', 'dns', '42', '-n', '1', ...view, '--json']));
    assert.deepEqual([(cut['intervals'] as readonly object[]).length, cut['more']], [1, true]);
    for (const wrong of [['dns'], ['dns', '0'], ['../x', '1'], ['dns', '42', '--host', 'web-1'], []])
      assert.equal((await runWrit(['fleet', 'history', ...wrong, ...view])).exitCode, 2, wrong.join(' '));
    assert.equal((await runWrit(['fleet', 'history', 'dns', '7', ...view])).exitCode, 0);
  });

  it(
    'count hosts that cannot confirm separately, and as done only with --accept notified',
    longCase,
    async () => {
      await using fleet = await servedFleet();
      const active = { serial: 42, manifest: 'a'.repeat(64), sinceMs: 1, state: 'notified' } as const;
      await (await fleet.host('web-1')).report({ bundles: [bundleAt(42, { active })] });
      const store = ['--store', fleet.store];
      const strict = await wait(...store, '--within', '10ms');
      assert.deepEqual([strict.exitCode, jsonOf(strict)['notified']], [1, 1]);
      assert.equal((await wait(...store, '--accept', 'notified')).exitCode, 0);
      const clock = skippedPauses(pauseMs);
      const ended = await runWrit(['fleet', 'wait', 'dns', '42', '--within', '6s', ...store], { clock });
      assert.match(
        ended.stderr,
        /1 of 1 have it and nothing that could confirm it: .+ --accept notified alone/,
      );
      const { stderr } = await runWrit(['fleet', 'wait', 'dns', '43', '--within', '10ms', ...store]);
      assert.doesNotMatch(stderr, /--accept/);
    },
  );

  it('report at the deadline how many hosts have the release unconfirmed', longCase, async () => {
    await using fleet = await servedFleet();
    const active = { serial: 42, manifest: 'a'.repeat(64), sinceMs: 1, state: 'unconfirmed' } as const;
    await (await fleet.host('web-1')).report({ bundles: [bundleAt(42, { active })] });
    const over = await wait('--store', fleet.store, '--within', '10ms');
    assert.deepEqual([over.exitCode, jsonOf(over)['unconfirmed'], jsonOf(over)['done']], [1, 1, 0]);
    const ended = await runWrit(['fleet', 'wait', 'dns', '42', '--within', '10ms', '--store', fleet.store]);
    assert.match(ended.stdout, /^TIME OVER dns 42: 0 of 1 done, 1 needed; 1 unconfirmed$/m);
  });

  it('find hosts by a filter, show a host, and retire it', async () => {
    await using fleet = await servedFleet();
    const one = await fleet.host('web-1', { site: 'fra' });
    await one.report({ labels: { site: 'fra' } });
    await (await fleet.host('web-2')).report();
    const connection = await fleet.roleFlags('operate');
    const found = await runWrit(['fleet', 'hosts', '--where', 'label.site=fra', ...connection, '--json']);
    assert.deepEqual(
      (jsonOf(found)['hosts'] as { host: string }[]).map(({ host }) => host),
      ['web-1'],
    );
    assert.equal((await runWrit(['fleet', 'hosts', '--where', 'bogus=1', ...connection])).exitCode, 2);
    const shown = await runWrit(['fleet', 'host', 'web-1', ...connection]);
    assert.match(shown.stdout, new RegExp(`^HEARD web-1 {2}${one.key}$`, 'm'));
    const view = await fleet.roleFlags('view');
    const denied = await runWrit(['fleet', 'host', 'retire', 'web-1', ...view, '--json']);
    assert.deepEqual([denied.exitCode, jsonOf(denied)['code']], [1, 'FLEET_FORBIDDEN']);
    assert.equal((await runWrit(['fleet', 'host', 'retire', 'web-1', ...connection])).exitCode, 0);
    assert.equal((await one.report()).status, 403);
    const gone = await runWrit(['fleet', 'host', 'web-1', ...connection, '--json']);
    assert.equal(jsonOf(gone)['code'], 'FLEET_HOST_UNKNOWN');
    const log = await runWrit(['fleet', 'log', ...connection]);
    assert.match(log.stdout, /token [0-9a-f]{12} +host\.retire/);
  });

  it('retire every host of a token, and name the token while it still enrols', async () => {
    await using fleet = await servedFleet();
    const hosts = [await fleet.host('web-1'), await fleet.host('web-2')];
    for (const host of hosts) await host.report();
    const connection = await fleet.roleFlags('operate');
    const listed = jsonOf(await runWrit(['fleet', 'token', 'list', ...connection, '--json']))['tokens'];
    const id = (listed as TokenLine[]).find(({ kind }) => kind === 'hosts')?.id ?? '';
    for (const wrong of [['approve'], ['retire', 'web-1']])
      assert.equal((await runWrit(['fleet', 'host', ...wrong, '--token', id, ...connection])).exitCode, 2);
    const retired = await runWrit(['fleet', 'host', 'retire', '--token', id, ...connection]);
    assert.match(retired.stdout, new RegExp(`^RETIRED   2 hosts of token ${id}$`, 'm'));
    assert.match(retired.stdout + retired.stderr, new RegExp(`Next: writ fleet token revoke ${id}`));
    for (const host of hosts) assert.equal((await host.report()).status, 403);
    const unknown = await runWrit(['fleet', 'host', 'retire', '--token', 'none', ...connection, '--json']);
    assert.deepEqual([unknown.exitCode, jsonOf(unknown)['code']], [1, 'FLEET_TOKEN_UNKNOWN']);
  });

  it('prefer --store to the server of a variable, and refuse --store with --url', longCase, async () => {
    await using fleet = await servedFleet();
    const env = { WRIT_FLEET_URL: 'https://127.0.0.1:9', WRIT_FLEET_TOKEN_FILE: '/nowhere' };
    const store = ['--store', fleet.store];
    const taken = await runWrit(['fleet', 'hosts', ...store], { env });
    assert.equal(taken.exitCode, 0, taken.stderr);
    const two = await runWrit(['fleet', 'hosts', ...store, '--url', fleet.url]);
    assert.match(two.stderr, /--url and --store both select a server: give one of them/);
  });

  it('print only the token with -q, as the token file of a host needs it', longCase, async () => {
    await using fleet = await servedFleet();
    const create = ['fleet', 'token', 'create', '--for', 'hosts', '--store', fleet.store];
    assert.match((await runWrit([...create, '-q'])).stdout, /^writ_host\w*_[\w-]+\n$/);
    const { stdout } = await runWrit(create);
    assert.match(stdout, /^CREATED .*\nwrit_host\w*_[\w-]+\nUndo: /);
    const listed = await runWrit(['fleet', 'token', 'list', '-q', '--store', fleet.store]);
    assert.match(listed.stdout, /hosts/);
  });

  it('revoke a token, which is refused from then on', longCase, async () => {
    await using fleet = await servedFleet();
    const connection = await fleet.roleFlags('operate');
    const listed = await runWrit(['fleet', 'token', 'list', ...connection, '--json']);
    const [{ id = '' } = {}] = jsonOf(listed)['tokens'] as { id: string }[];
    assert.ok(!listed.stdout.includes('writ_people_'));
    assert.equal((await runWrit(['fleet', 'token', 'revoke', id, ...connection])).exitCode, 0);
    const after = await runWrit(['fleet', 'token', 'list', ...connection, '--json']);
    assert.deepEqual([after.exitCode, jsonOf(after)['code']], [1, 'FLEET_TOKEN_REFUSED']);
    const unknown = await runWrit(['fleet', 'token', 'revoke', 'nobody', '--store', fleet.store, '--json']);
    assert.equal(jsonOf(unknown)['code'], 'FLEET_TOKEN_UNKNOWN');
  });

  it('print no control character that a host reports', longCase, async () => {
    await using fleet = await servedFleet();
    const host = await fleet.host('web-1');
    const line = '\u001b]0;owned\u0007 line\u009b2J\u202e';
    const offered = { ...refused, line };
    await host.report({ bundles: [bundleAt(41, { offered })] });
    for (const name of [
      'web\u009b2J',
      'web\u009d0;owned\u009c',
      'web\u202e=cmd',
      'web\u001b[2J',
      'web-1\u200b',
    ]) {
      await assert.rejects(fleet.host(name));
      assert.equal((await host.report({ host: name })).status, 400);
      assert.equal((await host.report({ labels: { site: name } })).status, 400);
    }
    for (const args of [['hosts'], ['status'], ['log'], ['host', host.key]]) {
      const { stdout, stderr } = await runWrit(['fleet', ...args, '--store', fleet.store]);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the output must not contain them
      assert.ok(!/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/.test(stdout + stderr), args[0]);
    }
  });

  it('send a token only over TLS or to this machine, and only one for people', longCase, async () => {
    await using fleet = await servedFleet();
    const file = fleet.dir.join('hosts.token');
    writeFileSync(file, await fleet.token('--for', 'hosts'));
    for (const url of ['http://192.0.2.1', 'ftp://127.0.0.1', 'nonsense', 'https://u:p@example.net'])
      assert.equal(
        (await runWrit(['fleet', 'status', '--url', url, '--token-file', file, '--json'])).exitCode,
        3,
      );
    const kind = await runWrit(['fleet', 'log', '--url', fleet.url, '--token-file', file, '--json']);
    assert.deepEqual([kind.exitCode, jsonOf(kind)['code']], [2, 'USAGE']);
    const withoutServer = await runWrit(['fleet', 'log', '--json']);
    assert.equal(jsonOf(withoutServer)['code'], 'USAGE');
    const connection = await fleet.roleFlags('view');
    const elsewhere = await runWrit([
      'fleet',
      'log',
      '--url',
      'http://127.0.0.1:9',
      ...connection.slice(2),
      '--json',
    ]);
    assert.deepEqual([elsewhere.exitCode, jsonOf(elsewhere)['code']], [1, 'FLEET_UNANSWERED']);
  });

  it('create no store, except for a new token', async () => {
    using dir = tempDir();
    const store = ['--store', dir.join('none'), '--json'];
    for (const args of [['status'], ['token', 'list'], ['token', 'revoke', 'abc']]) {
      assert.equal(jsonOf(await runWrit(['fleet', ...args, ...store]))['code'], 'FLEET_STORE_LOCATION');
      assert.equal(existsSync(dir.join('none')), false);
    }
    assert.equal((await runWrit(['fleet', 'token', 'create', '--for', 'hosts', ...store])).exitCode, 0);
    assert.equal(jsonOf(await runWrit(['fleet', 'token', 'list', ...store]))['outcome'], 'found');
  });

  it('trust the authorities of --ca instead of those of the system, and refuse a file without a certificate', async () => {
    using dir = tempDir();
    const { certFile, keyFile } = await makeCertificate(dir.path, 'fleet');
    await using fleet = await servedFleet('--tls-cert', certFile, '--tls-key', keyFile);
    const log = async (...ca: readonly string[]) => {
      const run = await runWritProcess(['fleet', 'log', ...(await fleet.roleFlags('view')), ...ca, '--json']);
      hint = jsonOf(run)['hint'];
      return [run.exitCode, jsonOf(run)['code']];
    };
    let hint: unknown;
    assert.deepEqual(await log('--ca', certFile), [0, undefined]);
    assert.deepEqual(await log(), [1, 'FLEET_UNANSWERED']);
    assert.match(String(hint), /^Give --ca FILE \(or WRIT_FLEET_CA\)/);
    const { certFile: another } = await makeCertificate(dir.path, 'another');
    assert.deepEqual(await log('--ca', another), [1, 'FLEET_UNANSWERED']);
    for (const none of [keyFile, dir.join('none')]) assert.deepEqual(await log('--ca', none), [2, 'USAGE']);
    assert.deepEqual(await log('--ca', certFile, '--url', 'http://127.0.0.1:9'), [2, 'USAGE']);
  });
});
