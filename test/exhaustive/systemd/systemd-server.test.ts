// The server's unit under a real systemd: its user, its hardening, a port below 1024, a reload, a watchdog.
import assert from 'node:assert/strict';
import { cpSync, rmSync } from 'node:fs';
import { describe, it } from 'node:test';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { makeCertificate } from '../../kit/net/certificate.js';
import { bootSystemd, needsBoot } from '../../kit/programs/booted-systemd.js';
import { installUsers, machineWithWrit } from '../../kit/programs/machine-with-writ.js';
import { needs } from '../../kit/programs/real-programs.js';
import { someKeys } from '../../kit/repository/sample-repository.js';

const options = {
  timeout: 120_000,
  ...needs('curl', 'curl'),
  ...needs('openssl', 'openssl'),
  ...needsBoot(),
};
const server = 'writ-server.service';
const environment = `WRIT_SERVE_LISTEN=127.0.0.1:443
WRIT_SERVE_TLS_CERT=/etc/writ/tls/one.crt
WRIT_SERVE_TLS_KEY=/etc/writ/tls/one.pem
WRIT_SERVE_KEYS=/etc/writ/online
`;

describe('writ-server.service, under a real systemd', options, () => {
  it('serves with the few rights that its unit leaves it', async (t) => {
    using dir = tempDir();
    const { disk, repository } = machineWithWrit(dir);
    disk.write('/etc/writ/server.env', environment);
    disk.write(`/etc/systemd/system/${server}.d/quick.conf`, '[Service]\nWatchdogSec=2s\nRestartSec=100ms\n');
    disk.write('/etc/writ/tls/.keep', '');
    await makeCertificate(disk.path('/etc/writ/tls'), 'one');
    await makeCertificate(disk.path('/etc/writ/tls'), 'two');
    const online = someKeys(dir, repository, 'snapshot.key', 'timestamp.key', 'root.json');
    cpSync(online, disk.path('/etc/writ/online'), { recursive: true });
    await using machine = await bootSystemd(disk);
    await installUsers(machine);
    await machine.ok('chown', '-R', 'writ:writ', '/srv/writ/repo', '/etc/writ/online', '/etc/writ/tls');
    const get = (path: string, name = 'one'): Promise<string> =>
      machine.ok('curl', '-fsS', '--cacert', `/etc/writ/tls/${name}.crt`, `https://127.0.0.1${path}`);
    const version = async (): Promise<number> =>
      (JSON.parse(await get('/metadata/timestamp.json')) as { signed: { version: number } }).signed.version;

    await t.test('is active once it listens, below port 1024, as its own user', async () => {
      await machine.ok('systemctl', 'start', server);
      const health = JSON.parse(await get('/healthz')) as { status: string };
      assert.equal(health.status, 'ok');
      assert.equal(await machine.show(server, 'StatusText'), 'listening on https://127.0.0.1:443');
      const pid = await machine.show(server, 'MainPID');
      assert.equal(await machine.ok('stat', '-c', '%U', `/proc/${pid}`), 'writ');
    });

    await t.test('signs a release that was published without its keys', async () => {
      const before = await version();
      const keys = someKeys(dir, repository, 'targets.key');
      await repository.publish({ 'block.rpz': 'one\n' }, { keys });
      await machine.ok('chown', '-R', 'writ:writ', '/srv/writ/repo');
      await machine.ok(
        'sh',
        '-c',
        `until curl -fsSk https://127.0.0.1/metadata/timestamp.json | grep -q '"version":${before + 1}'; do sleep 0.1; done`,
      );
    });

    await t.test(
      'reads certificate and key at a reload, and reports a pair that does not match',
      async () => {
        const pid = await machine.show(server, 'MainPID');
        const use = (cert: string, key: string): Promise<string> =>
          machine.ok('sh', '-c', `cd /etc/writ/tls && cp ${cert}.crt one.crt && cp ${key}.pem one.pem`);
        await machine.ok('cp', '/etc/writ/tls/one.pem', '/etc/writ/tls/old.pem');
        await use('two', 'old');
        await machine.ok('systemctl', 'reload', server);
        await machine.becomes(server, 'StatusText', /the last reload failed, the old certificate stays/);
        await use('two', 'two');
        await machine.ok('systemctl', 'reload', server);
        await machine.becomes(server, 'StatusText', 'listening on https://127.0.0.1:443');
        await get('/healthz', 'two');
        assert.deepEqual(
          [await machine.show(server, 'MainPID'), await machine.show(server, 'ActiveState')],
          [pid, 'active'],
        );
      },
    );

    await t.test('is killed and restarted when it hangs', async () => {
      const pid = await machine.show(server, 'MainPID');
      await machine.ok('kill', '-STOP', pid);
      await machine.becomes(server, 'NRestarts', '1');
      await machine.becomes(server, 'ActiveState', 'active');
      await get('/healthz', 'two');
    });

    await t.test(
      'exits with success when it is stopped, and does not restart with an invalid repository',
      async () => {
        await machine.ok('systemctl', 'stop', server);
        assert.equal(await machine.show(server, 'Result'), 'success');
        rmSync(disk.path('/srv/writ/repo/metadata'), { recursive: true });
        assert.notEqual((await machine.run('systemctl', 'start', server)).exitCode, 0);
        await machine.becomes(server, 'ActiveState', 'failed');
        assert.equal(await machine.show(server, 'ExecMainStatus'), '2');
      },
    );
  });
});
