// `writ fleet serve` as a process: its webhook, the renewal of its certificate, and a failed start.
import assert from 'node:assert/strict';
import { copyFileSync, readdirSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { startFleetServer } from '../../../src/fleet/http/fleet-server.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { runWrit } from '../../kit/cli/run-writ.js';
import { startWrit } from '../../kit/cli/writ-process.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { bundleAt } from '../../kit/fleet/fleet-bench.js';
import { servedFleet } from '../../kit/fleet/served-fleet.js';
import { receiver } from '../../kit/fleet/webhook-bench.js';
import { makeCertificate, secureGet } from '../../kit/net/certificate.js';

const refusing = (serial: number) => ({
  bundles: [bundleAt(42, { offered: { serial, state: 'refused', code: 'CHECK_FAILED', atMs: 1 } })],
});

/** @returns '' for a descriptor that is closed by now */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

describe('a fleet server', () => {
  it(
    'notifies a receiver of a problem once, also after a restart, and delays no report when the receiver hangs',
    longCase,
    async () => {
      await using target = await receiver();
      await using fleet = await servedFleet('--webhook', target.url.href);
      const host = await fleet.host('web-1');
      assert.equal((await host.report(refusing(43))).status, 200);
      await until(() => target.bodies.length === 1);
      assert.equal(target.bodies[0]?.externalURL, fleet.url);
      fleet.server.child.kill('SIGTERM');
      await fleet.server.ended;
      target.answer = () => undefined;
      const again = ['fleet', 'serve', '--store', fleet.store, '--listen', new URL(fleet.url).host];
      await using server = startWrit([...again, '--webhook', target.url.href]);
      await server.waitForStdout(/LISTENING/);
      assert.equal((await host.report(refusing(44))).status, 200);
      await until(() => target.bodies.length === 2);
      const serials = target.bodies.map(({ alerts }) =>
        alerts.map(({ status, labels }) => `${status} ${labels['serial']}`),
      );
      assert.deepEqual(serials, [['firing 43'], ['firing 44']]);
      // The receiver has not answered yet.
      assert.equal((await host.report(refusing(45))).status, 200);
      assert.doesNotMatch(server.stderr(), /secret/);
    },
  );

  it('links to its public URL, and not to its listening address', longCase, async () => {
    await using target = await receiver();
    const link = ['--public-url', 'https://fleet.example.net/'];
    await using fleet = await servedFleet('--webhook', target.url.href, ...link);
    const host = await fleet.host('web-1');
    assert.equal((await host.report(refusing(43))).status, 200);
    await until(() => target.bodies.length === 1);
    const [body] = target.bodies;
    assert.equal(body?.externalURL, 'https://fleet.example.net');
    assert.match(String(body?.alerts[0]?.generatorURL), /^https:\/\/fleet\.example\.net\/hosts\?where=/);
    for (const url of [
      'fleet',
      'ftp://fleet/',
      'https://a@fleet/',
      'https://fleet/x',
      'https://fleet/?x',
      'https://fleet/#x',
    ])
      assert.equal(
        (
          await runWrit([
            'fleet',
            'serve',
            '--store',
            '/nonexistent',
            '--webhook',
            target.url.href,
            '--public-url',
            url,
          ])
        ).exitCode,
        2,
        url,
      );
  });

  it('refuses a webhook without TLS, because its content and its token would be readable', async () => {
    const serve = (...flags: string[]) => runWrit(['fleet', 'serve', '--store', '/nonexistent', ...flags]);
    for (const flags of [
      ['--webhook', 'http://alarms.example.net/hook'],
      ['--webhook', 'https://user:pass@alarms.example.net/'],
      ['--webhook-token-file', 'token'],
      ['--webhook-ca', 'ca.crt'],
    ])
      assert.equal((await serve(...flags)).exitCode, 2, flags.join(' '));
  });

  it(
    'serves a renewed certificate after SIGHUP, and the old one while only half of the renewal is in place',
    longCase,
    async () => {
      using dir = tempDir();
      const [first, second] = [
        await makeCertificate(dir.path, 'one'),
        await makeCertificate(dir.path, 'two'),
      ];
      const [cert, key] = [dir.join('fleet.crt'), dir.join('fleet.key')];
      copyFileSync(first.certFile, cert);
      copyFileSync(first.keyFile, key);
      await using fleet = await servedFleet('--tls-cert', cert, '--tls-key', key);
      assert.match(fleet.url, /^https:/);
      const nameBy = async (certFile: string) => (await secureGet(fleet.url, certFile)).name;
      assert.equal(await nameBy(first.certFile), 'one');
      copyFileSync(second.certFile, cert);
      fleet.server.child.kill('SIGHUP');
      await fleet.server.waitForStderr(/TLS_INVALID/);
      assert.equal(await nameBy(first.certFile), 'one');
      copyFileSync(second.keyFile, key);
      fleet.server.child.kill('SIGHUP');
      await fleet.server.waitForStderr(/certificate read again/);
      assert.equal(await nameBy(second.certFile), 'two');
      await assert.rejects(nameBy(first.certFile));
    },
  );

  it('closes its store when it cannot start, for any reason', async () => {
    using dir = tempDir();
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
    const { port } = blocker.address() as { port: number };
    const started = { store: dir.join('store'), host: '127.0.0.1', log: silentLog(), clock: systemClock };
    const options = { ...started, processMetrics: 'omit' } as const;
    const open = (): number =>
      readdirSync('/proc/self/fd').filter((fd) => linkOf(`/proc/self/fd/${fd}`).startsWith(started.store))
        .length;
    await rejectsCode('LISTEN_FAILED', startFleetServer({ ...options, port }));
    assert.equal(open(), 0);
    const running = await startFleetServer({ ...options, port: 0 });
    assert.ok(open() > 0);
    await running.close();
    const broken = { ...systemClock, nowMs: () => Number.NaN };
    await assert.rejects(startFleetServer({ ...options, port: 0, clock: broken }));
    assert.equal(open(), 0);
    await new Promise((resolve) => blocker.close(resolve));
  });
});
