import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { networkInterfaces } from 'node:os';
import { describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { addressForHosts, listenFlag } from '../../../../src/cli/serving/listening.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { until } from '../../../kit/assert/until.js';
import { jsonOf, runWrit } from '../../../kit/cli/run-writ.js';
import { startWrit } from '../../../kit/cli/writ-process.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { makeCertificate, secureGet } from '../../../kit/net/certificate.js';
import { hostileClients } from '../../../kit/net/hostile-client.js';
import { rawRequest } from '../../../kit/net/raw-request.js';
import { needs } from '../../../kit/programs/real-programs.js';
import { writeRepository } from '../../../kit/repository/unsigned-repository.js';

const openssl = needs('openssl', 'openssl');
const urlPattern = /^LISTENING (http:\/\/127\.0\.0\.1:\d+)$/m;

describe('--listen', () => {
  it('is a host and a port', () => {
    assert.deepEqual(listenFlag('127.0.0.1:8080'), { host: '127.0.0.1', port: 8080 });
    assert.deepEqual(listenFlag('localhost:0'), { host: 'localhost', port: 0 });
    assert.deepEqual(listenFlag('[::1]:443'), { host: '::1', port: 443 });
  });

  it('of all interfaces is replaced by the name of the machine in the address for hosts', () => {
    assert.equal(addressForHosts('https://0.0.0.0:8443'), 'https://NAME-OF-THIS-MACHINE:8443');
    assert.equal(addressForHosts('http://[::]:80'), 'http://NAME-OF-THIS-MACHINE:80');
    for (const url of ['http://127.0.0.1:80', 'https://10.0.0.0:1', 'http://[::1]:80'])
      assert.equal(addressForHosts(url), url);
  });

  for (const text of [
    '',
    '8080',
    ':8080',
    'host',
    'host:',
    'host:70000',
    '::1:80',
    'a b:1',
    'h:1:2',
    '[x]:1',
  ]) {
    it(`is not ${JSON.stringify(text)}`, () => {
      assert.throws(() => listenFlag(text), { code: 'commander.invalidArgument' });
    });
  }
});

describe('writ serve of an address with many connections', () => {
  // Loopback is never limited, so the test needs another address of this machine.
  const own = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  const skip = own === undefined && 'this machine has no address but loopback';

  const statusWith = async (...flags: readonly string[]): Promise<number> => {
    using dir = tempDir();
    writeRepository(dir.path);
    const args = ['serve', '--repository', dir.path, '--listen', `${own}:0`, '-q', ...flags];
    await using server = startWrit(args);
    const [, url = ''] = await server.waitForStdout(/^LISTENING (http:.+)$/m);
    const held = await hostileClients(url, '', 2);
    const { status } = await rawRequest(
      url,
      'GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n',
    );
    for (const socket of held) socket.destroy();
    return status;
  };

  it('refuses a connection above --per-address', { skip }, async () => {
    assert.equal(await statusWith('--per-address', '2'), 429);
  });

  it('refuses no connection with --per-address off, and none of a --proxy', { skip }, async () => {
    assert.equal(await statusWith('--per-address', 'off'), 200);
    assert.equal(await statusWith('--per-address', '2', '--proxy', '192.0.2.77', '--proxy', `${own}`), 200);
  });
});

describe('writ serve', () => {
  it('prints its address and the next step on stdout, and logs to stderr', longCase, async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    await using server = startWrit(['serve', '--repository', dir.path, '--listen', '127.0.0.1:0']);
    const [, url = ''] = await server.waitForStdout(urlPattern);
    await server.waitForStdout(/^Next: .+\n/m);
    assert.equal((await fetch(`${url}/metadata/timestamp.json`)).status, 200);
    await server.waitForStderr(/"msg":"request"/);
    const lines = server.stderr().trimEnd().split('\n');
    const [first] = lines.map((line) => JSON.parse(line) as { readonly msg: string; readonly url: string });
    assert.deepEqual([first?.msg, first?.url], ['listening', url]);
    server.child.kill('SIGTERM');
    const { exitCode, stdout } = await server.ended;
    assert.equal(exitCode, 0);
    assert.match(stdout, /^STOPPED /m);
  });

  it('prints one JSON object a line with --json, and the result last', longCase, async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const args = ['serve', '--repository', dir.path, '--listen', '127.0.0.1:0', '--json', '-q'];
    await using server = startWrit(args);
    await server.waitForStdout(/\n/);
    server.child.kill('SIGINT');
    const { exitCode, stdout, stderr } = await server.ended;
    const answers = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.equal(exitCode, 0);
    assert.equal(stderr, '');
    assert.deepEqual(
      answers.map(({ schema, type, outcome }) => [schema, type, outcome]),
      [
        [1, 'serve.listening', 'listening'],
        [1, 'serve.result', 'stopped'],
      ],
    );
    assert.match(String(answers[0]?.['url']), /^http:/);
  });

  it('finishes a running download after SIGTERM', longCase, async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const file = `targets/${'c'.repeat(64)}.big`;
    fs.writeFileSync(dir.join(file), Buffer.alloc(30_000_000, 0x61));
    await using server = startWrit(['serve', '--repository', dir.path, '--listen', '127.0.0.1:0']);
    const [, url = ''] = await server.waitForStdout(urlPattern);
    const response = await fetch(`${url}/${file}`);
    server.child.kill('SIGTERM');
    await server.waitForStderr(/"msg":"closing"/);
    await assert.rejects(fetch(`${url}/metadata/timestamp.json`));
    assert.equal((await response.arrayBuffer()).byteLength, 30_000_000);
    assert.equal((await server.ended).exitCode, 0);
  });

  it('ends immediately at the second SIGTERM', longCase, async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const file = `targets/${'c'.repeat(64)}.big`;
    fs.writeFileSync(dir.join(file), Buffer.alloc(30_000_000, 0x61));
    await using server = startWrit(['serve', '--repository', dir.path, '--listen', '127.0.0.1:0']);
    const [, url = ''] = await server.waitForStdout(urlPattern);
    const response = await fetch(`${url}/${file}`);
    server.child.kill('SIGTERM');
    await server.waitForStderr(/"msg":"closing"/);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).exitCode, 143);
    await assert.rejects(response.arrayBuffer());
  });

  const refusals: readonly (readonly [string, readonly string[], string, number])[] = [
    ['no repository', ['--repository', '/nonexistent'], 'USAGE', 2],
    ['no --repository', [], 'USAGE', 2],
    ['an invalid address', ['--repository', '/', '--listen', 'nowhere'], 'USAGE', 2],
    ['a --per-address of 0', ['--repository', '/', '--per-address', '0'], 'USAGE', 2],
    ['a --per-address that is not a number', ['--repository', '/', '--per-address', 'many'], 'USAGE', 2],
    ['a --proxy that is not an address', ['--repository', '/', '--proxy', 'proxy.example'], 'USAGE', 2],
    ['a certificate without its key', ['--repository', '/', '--tls-cert', '/x'], 'USAGE', 2],
    ['a key without its certificate', ['--repository', '/', '--tls-key', '/x'], 'USAGE', 2],
  ];
  for (const [what, args, code, exitCode] of refusals) {
    it(`refuses ${what}`, async () => {
      const run = await runWrit(['serve', ...args, '--json']);
      assert.deepEqual([jsonOf(run)['code'], run.exitCode], [code, exitCode]);
    });
  }

  it('exits 1 with LISTEN_FAILED for a foreign address, and 2 with TLS_INVALID for files that are no pair', async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const base = ['serve', '--repository', dir.path, '--json'];
    const foreign = await runWrit([...base, '--listen', '192.0.2.1:8080']);
    assert.deepEqual([jsonOf(foreign)['code'], foreign.exitCode], ['LISTEN_FAILED', 1]);
    const lock = dir.join('.lock');
    const noPair = await runWrit([...base, '--tls-cert', lock, '--tls-key', lock]);
    assert.deepEqual([jsonOf(noPair)['code'], noPair.exitCode], ['TLS_INVALID', 2]);
  });

  it('keeps running after SIGHUP when it has no certificate to read again', longCase, async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    await using server = startWrit(['serve', '--repository', dir.path, '--listen', '127.0.0.1:0']);
    const [, url = ''] = await server.waitForStdout(urlPattern);
    server.child.kill('SIGHUP');
    assert.equal((await fetch(`${url}/healthz`)).status, 200);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).exitCode, 0);
  });

  it('loads a renewed certificate at SIGHUP, and keeps the old one while key and certificate do not match', {
    ...openssl,
    ...longCase,
  }, async () => {
    using dir = tempDir();
    const { live, renewed, server: started, url } = await serveWithRenewal(dir);
    await using server = started;
    assert.equal((await secureGet(url, live.certFile)).name, 'live');
    fs.copyFileSync(renewed.certFile, live.certFile);
    server.child.kill('SIGHUP');
    await server.waitForStderr(/"code":"TLS_INVALID"/);
    fs.copyFileSync(renewed.keyFile, live.keyFile);
    server.child.kill('SIGHUP');
    await server.waitForStderr(/certificate read again/);
    assert.equal((await secureGet(url, renewed.certFile)).name, 'renewed');
  });

  it('answers every request during many SIGHUPs, and loads the last certificate', {
    ...openssl,
    ...longCase,
  }, async () => {
    using dir = tempDir();
    const { live, renewed, server: started, url } = await serveWithRenewal(dir);
    await using server = started;
    const storm = async (): Promise<void> => {
      for (let count = 0; count < 1000; count += 1) {
        server.child.kill('SIGHUP');
        await setTimeout(1);
      }
    };
    const requests = async (): Promise<void> => {
      for (let count = 0; count < 30; count += 1) {
        assert.equal((await secureGet(url, live.certFile)).status, 200);
      }
    };
    await Promise.all([storm(), requests()]);
    fs.copyFileSync(renewed.certFile, live.certFile);
    fs.copyFileSync(renewed.keyFile, live.keyFile);
    server.child.kill('SIGHUP');
    await until(
      async () => (await secureGet(url, renewed.certFile).catch(() => undefined))?.name === 'renewed',
    );
  });
});

/** A server with a certificate, and a second certificate to renew it with. */
async function serveWithRenewal(dir: TempDir) {
  writeRepository(dir.path);
  const live = await makeCertificate(dir.path, 'live');
  const renewed = await makeCertificate(dir.path, 'renewed');
  const server = startWrit([
    ...['serve', '--repository', dir.path, '--listen', '127.0.0.1:0'],
    ...['--tls-cert', live.certFile, '--tls-key', live.keyFile],
  ]);
  const [, url = ''] = await server.waitForStdout(/^LISTENING (https:.+)$/m);
  return { live, renewed, server, url };
}
