// The fleet's commands against a real server, from the first token to a wait that a refusal ends.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { TokenLine } from '../../../src/core/fleet/token-answers.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { skippedPauses } from '../../kit/clock/skipped-pauses.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { bundleAt } from '../../kit/fleet/fleet-bench.js';
import { servedFleet } from '../../kit/fleet/served-fleet.js';
import { makeCertificate } from '../../kit/net/certificate.js';

const refused = { serial: 42, state: 'refused', code: 'CHECK_FAILED', atMs: 5, line: 'line 7: no' } as const;
const wait = (...args: readonly string[]) => runWrit(['fleet', 'wait', 'dns', '42', ...args, '--json']);
/** Between two looks of a wait. */
const pauseMs = 2000;

describe('the commands of a fleet', () => {
  it('say who runs what, and end a wait with the code of its end', async () => {
    await using fleet = await servedFleet();
    const door = await fleet.door('view');
    assert.deepEqual(
      [(await wait(...door)).exitCode, (await runWrit(['fleet', 'status', ...door])).exitCode],
      [2, 1],
    );
    const [one, two] = [await fleet.host('web-1', { site: 'fra' }), await fleet.host('web-2')];
    await one.report({ bundles: [bundleAt(42)] });
    await two.report({ bundles: [bundleAt(42)] });
    const reached = await wait(...door);
    assert.equal(reached.exitCode, 0, reached.stdout);
    assert.equal(jsonOf(reached)['done'], 2);
    const well = await runWrit(['fleet', 'status', '--store', fleet.store]);
    assert.match(well.stdout, /^OK All 2 hosts confirmed dns 42\.$/m);
    assert.equal(well.exitCode, 0);
    await two.report({ bundles: [bundleAt(41, { offered: refused })] });
    const ended = await wait(...door);
    assert.equal(ended.exitCode, 3);
    assert.deepEqual(jsonOf(ended)['refusedHosts'], [{ host: 'web-2', key: two.key, code: 'CHECK_FAILED' }]);
    assert.equal((await wait(...door, '--share', '50%')).exitCode, 0);
    const status = await runWrit(['fleet', 'status', ...door]);
    assert.equal(status.exitCode, 2);
    assert.match(status.stdout, /^CRITICAL 1 host \(web-2\) refused dns 42 \(CHECK_FAILED\)/);
    assert.ok(!status.stdout.includes('line 7'));
    assert.match((await runWrit(['fleet', 'status', ...(await fleet.door('detail'))])).stdout, /line 7: no/);
    await one.report({ bundles: [bundleAt(43)] });
    assert.equal((await wait(...door)).exitCode, 4);
    await one.report({ bundles: [bundleAt(41)] });
    await two.report({ bundles: [bundleAt(41)] });
    assert.equal((await wait(...door, '--within', '10ms')).exitCode, 1);
  });

  it('wait for the newest release without its serial, and keep it when a newer one comes', async () => {
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
  });

  it('list which hosts ran or refused a release, and which releases a host did', async () => {
    await using fleet = await servedFleet();
    const one = await fleet.host('web-1');
    const two = await fleet.host('web-2');
    await one.report({ bundles: [bundleAt(42)] });
    await two.report({ bundles: [bundleAt(41, { offered: refused })] });
    const [view, store] = [await fleet.door('view'), ['--store', fleet.store]];
    for (const door of [view, store]) {
      const shown = await runWrit(['fleet', 'history', 'dns', '42', ...door]);
      assert.match(shown.stdout, /FOUND {5}2 intervals\n/);
      assert.match(shown.stdout, /^ {2}web-1 +[0-9a-f]{12} +confirmed .* now$/m);
      assert.match(shown.stdout, /^ {2}web-2 +[0-9a-f]{12} +refused +CHECK_FAILED .* now$/m);
      const host = jsonOf(await runWrit(['fleet', 'history', '--host', 'web-2', ...door, '--json']));
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

  it('count hosts with nothing to confirm apart, and as done only where that is asked for', async () => {
    await using fleet = await servedFleet();
    const active = { serial: 42, manifest: 'a'.repeat(64), sinceMs: 1, state: 'notified' } as const;
    await (await fleet.host('web-1')).report({ bundles: [bundleAt(42, { active })] });
    const store = ['--store', fleet.store];
    const strict = await wait(...store, '--within', '10ms');
    assert.deepEqual([strict.exitCode, jsonOf(strict)['notified']], [1, 1]);
    assert.equal((await wait(...store, '--accept', 'notified')).exitCode, 0);
    const clock = skippedPauses(pauseMs);
    const said = await runWrit(['fleet', 'wait', 'dns', '42', '--within', '6s', ...store], { clock });
    assert.match(said.stderr, /1 of 1 have it and nothing that could confirm it: .+ --accept notified alone/);
    const { stderr } = await runWrit(['fleet', 'wait', 'dns', '43', '--within', '10ms', ...store]);
    assert.doesNotMatch(stderr, /--accept/);
  });

  it('say at the end of the time how many have the release and did not confirm it', async () => {
    await using fleet = await servedFleet();
    const active = { serial: 42, manifest: 'a'.repeat(64), sinceMs: 1, state: 'unconfirmed' } as const;
    await (await fleet.host('web-1')).report({ bundles: [bundleAt(42, { active })] });
    const over = await wait('--store', fleet.store, '--within', '10ms');
    assert.deepEqual([over.exitCode, jsonOf(over)['unconfirmed'], jsonOf(over)['done']], [1, 1, 0]);
    const said = await runWrit(['fleet', 'wait', 'dns', '42', '--within', '10ms', '--store', fleet.store]);
    assert.match(said.stdout, /^TIME OVER dns 42: 0 of 1 done, 1 needed; 1 unconfirmed$/m);
  });

  it('find hosts by a filter, show one, and do with it what a person decided', async () => {
    await using fleet = await servedFleet();
    const one = await fleet.host('web-1', { site: 'fra' });
    await one.report({ labels: { site: 'fra' } });
    await (await fleet.host('web-2')).report();
    const door = await fleet.door('operate');
    const found = await runWrit(['fleet', 'hosts', '--where', 'label.site=fra', ...door, '--json']);
    assert.deepEqual(
      (jsonOf(found)['hosts'] as { host: string }[]).map(({ host }) => host),
      ['web-1'],
    );
    assert.equal((await runWrit(['fleet', 'hosts', '--where', 'bogus=1', ...door])).exitCode, 2);
    const shown = await runWrit(['fleet', 'host', 'web-1', ...door]);
    assert.match(shown.stdout, new RegExp(`^HEARD web-1 {2}${one.key}$`, 'm'));
    const view = await fleet.door('view');
    const denied = await runWrit(['fleet', 'host', 'retire', 'web-1', ...view, '--json']);
    assert.deepEqual([denied.exitCode, jsonOf(denied)['code']], [1, 'FLEET_FORBIDDEN']);
    assert.equal((await runWrit(['fleet', 'host', 'retire', 'web-1', ...door])).exitCode, 0);
    assert.equal((await one.report()).status, 403);
    const gone = await runWrit(['fleet', 'host', 'web-1', ...door, '--json']);
    assert.equal(jsonOf(gone)['code'], 'FLEET_HOST_UNKNOWN');
    const log = await runWrit(['fleet', 'log', ...door]);
    assert.match(log.stdout, /token [0-9a-f]{12} +host\.retire/);
  });

  it('retire every host of a token, and name the token while it enrols', async () => {
    await using fleet = await servedFleet();
    const hosts = [await fleet.host('web-1'), await fleet.host('web-2')];
    for (const host of hosts) await host.report();
    const door = await fleet.door('operate');
    const listed = jsonOf(await runWrit(['fleet', 'token', 'list', ...door, '--json']))['tokens'];
    const id = (listed as TokenLine[]).find(({ kind }) => kind === 'hosts')?.id ?? '';
    for (const wrong of [['approve'], ['retire', 'web-1']])
      assert.equal((await runWrit(['fleet', 'host', ...wrong, '--token', id, ...door])).exitCode, 2);
    const retired = await runWrit(['fleet', 'host', 'retire', '--token', id, ...door]);
    assert.match(retired.stdout, new RegExp(`^RETIRED   2 hosts of token ${id}$`, 'm'));
    assert.match(retired.stdout + retired.stderr, new RegExp(`Next: writ fleet token revoke ${id}`));
    for (const host of hosts) assert.equal((await host.report()).status, 403);
    const unknown = await runWrit(['fleet', 'host', 'retire', '--token', 'none', ...door, '--json']);
    assert.deepEqual([unknown.exitCode, jsonOf(unknown)['code']], [1, 'FLEET_TOKEN_UNKNOWN']);
  });

  it('take the store that was typed, whatever server a variable names, and one of two that were typed', async () => {
    await using fleet = await servedFleet();
    const env = { WRIT_FLEET_URL: 'https://127.0.0.1:9', WRIT_FLEET_TOKEN_FILE: '/nowhere' };
    const store = ['--store', fleet.store];
    const taken = await runWrit(['fleet', 'hosts', ...store], { env });
    assert.equal(taken.exitCode, 0, taken.stderr);
    const two = await runWrit(['fleet', 'hosts', ...store, '--url', fleet.url]);
    assert.match(two.stderr, /--url and --store both select a server: give one of them/);
  });

  it('print a token alone with -q, as a file of a host has it', async () => {
    await using fleet = await servedFleet();
    const create = ['fleet', 'token', 'create', '--for', 'hosts', '--store', fleet.store];
    assert.match((await runWrit([...create, '-q'])).stdout, /^writ_host\w*_[\w-]+\n$/);
    const { stdout } = await runWrit(create);
    assert.match(stdout, /^CREATED .*\nwrit_host\w*_[\w-]+\nUndo: /);
    const listed = await runWrit(['fleet', 'token', 'list', '-q', '--store', fleet.store]);
    assert.match(listed.stdout, /hosts/);
  });

  it('revoke a token, which ends what it may', async () => {
    await using fleet = await servedFleet();
    const door = await fleet.door('operate');
    const listed = await runWrit(['fleet', 'token', 'list', ...door, '--json']);
    const [{ id = '' } = {}] = jsonOf(listed)['tokens'] as { id: string }[];
    assert.ok(!listed.stdout.includes('writ_people_'));
    assert.equal((await runWrit(['fleet', 'token', 'revoke', id, ...door])).exitCode, 0);
    const after = await runWrit(['fleet', 'token', 'list', ...door, '--json']);
    assert.deepEqual([after.exitCode, jsonOf(after)['code']], [1, 'FLEET_TOKEN_REFUSED']);
    const unknown = await runWrit(['fleet', 'token', 'revoke', 'nobody', '--store', fleet.store, '--json']);
    assert.equal(jsonOf(unknown)['code'], 'FLEET_TOKEN_UNKNOWN');
  });

  it('let no host drive the terminal of who looks', async () => {
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
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      assert.ok(!/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/.test(stdout + stderr), args[0]);
    }
  });

  it('send a token over TLS or nowhere, and only one that is for people', async () => {
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
    const nobody = await runWrit(['fleet', 'log', '--json']);
    assert.equal(jsonOf(nobody)['code'], 'USAGE');
    const door = await fleet.door('view');
    const elsewhere = await runWrit([
      'fleet',
      'log',
      '--url',
      'http://127.0.0.1:9',
      ...door.slice(2),
      '--json',
    ]);
    assert.deepEqual([elsewhere.exitCode, jsonOf(elsewhere)['code']], [1, 'FLEET_UNANSWERED']);
  });

  it('make no store where none is, except for a new token', async () => {
    using dir = tempDir();
    const store = ['--store', dir.join('none'), '--json'];
    for (const args of [['status'], ['token', 'list'], ['token', 'revoke', 'abc']]) {
      assert.equal(jsonOf(await runWrit(['fleet', ...args, ...store]))['code'], 'FLEET_STORE_LOCATION');
      assert.equal(existsSync(dir.join('none')), false);
    }
    assert.equal((await runWrit(['fleet', 'token', 'create', '--for', 'hosts', ...store])).exitCode, 0);
    assert.equal(jsonOf(await runWrit(['fleet', 'token', 'list', ...store]))['outcome'], 'found');
  });

  it('trust the authorities of --ca in place of the system, and say what a file is that holds none', async () => {
    using dir = tempDir();
    const { certFile, keyFile } = await makeCertificate(dir.path, 'fleet');
    await using fleet = await servedFleet('--tls-cert', certFile, '--tls-key', keyFile);
    const log = async (...ca: readonly string[]) => {
      const run = await runWritProcess(['fleet', 'log', ...(await fleet.door('view')), ...ca, '--json']);
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
