import assert from 'node:assert/strict';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { type AddressInfo, BlockList } from 'node:net';
import { describe, it } from 'node:test';
import { connect } from 'node:tls';
import { isWritError } from '../../../src/core/errors.js';
import { createListener } from '../../../src/platform/serve/listener.js';
import { serverLimits } from '../../../src/platform/serve/server-limits.js';
import { readTlsFiles, type TlsFiles } from '../../../src/platform/serve/tls-files.js';
import { type ServerOptions, startServer } from '../../../src/server/server.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { makeCertificate, secureGet } from '../../kit/net/certificate.js';
import { getRequest, hostileClient } from '../../kit/net/hostile-client.js';
import { rawRequest } from '../../kit/net/raw-request.js';
import { needs } from '../../kit/programs/real-programs.js';
import { writeRepository } from '../../kit/repository/unsigned-repository.js';

function handshake(url: string, maxVersion: 'TLSv1.1' | 'TLSv1.2'): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const minVersion = maxVersion === 'TLSv1.1' ? 'TLSv1' : maxVersion;
    const ciphers = 'DEFAULT@SECLEVEL=0';
    const options = { host: hostname, port: Number(port), minVersion, maxVersion, ciphers } as const;
    const socket = connect({ ...options, rejectUnauthorized: false }, () => {
      resolve(socket.getProtocol() ?? '');
      socket.destroy();
    });
    socket.on('error', () => resolve('refused'));
  });
}

describe('TLS', needs('openssl', 'openssl'), () => {
  it('serves with a certificate, at least TLS 1.2, and takes a new one without a restart', async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const first = await makeCertificate(dir.path, 'first');
    const second = await makeCertificate(dir.path, 'second');
    const tls = { certFile: dir.join('live.crt'), keyFile: dir.join('live.pem') };
    const install = (files: TlsFiles): void => {
      fs.copyFileSync(files.certFile, tls.certFile);
      fs.copyFileSync(files.keyFile, tls.keyFile);
    };
    install(first);
    const server = await startServer({ repository: dir.path, host: '127.0.0.1', port: 0, tls });
    try {
      assert.match(server.url, /^https:\/\/127\.0\.0\.1:\d+$/);
      const answer = await secureGet(server.url, first.certFile);
      assert.deepEqual(answer, { status: 200, name: 'first', protocol: 'TLSv1.3' });
      assert.equal(await handshake(server.url, 'TLSv1.2'), 'TLSv1.2');
      assert.equal(await handshake(server.url, 'TLSv1.1'), 'refused');

      install(second);
      server.reloadTls();
      assert.equal((await secureGet(server.url, second.certFile)).name, 'second');

      // Half of a renewal: the pair in use stays.
      fs.copyFileSync(first.certFile, tls.certFile);
      assert.throws(() => server.reloadTls(), isTlsInvalid);
      assert.equal((await secureGet(server.url, second.certFile)).name, 'second');
    } finally {
      await server.close();
    }
  });

  it('closes a connection that is too many of its address before it shakes hands', async () => {
    using dir = tempDir();
    const tls = readTlsFiles(await makeCertificate(dir.path, 'first'));
    const limits = serverLimits({ maxConnectionsPerAddress: 1 }, 10_000);
    const listener = createListener({ limits, tls, uncounted: new BlockList(), onRefused: () => undefined });
    const server = listener.createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const held = await hostileClient(url, '');
    assert.deepEqual(await rawRequest(url, ''), { status: 0, headers: new Map(), body: '' });
    held.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  it('closes an idle connection for a new client, and never one with an active response', async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const file = `targets/${'c'.repeat(64)}.big`;
    fs.writeFileSync(dir.join(file), Buffer.alloc(30_000_000, 0x61));
    const tls = await makeCertificate(dir.path, 'first');
    const limits = { maxConnections: 1 };
    await using server = await closing({ repository: dir.path, host: '127.0.0.1', port: 0, tls, limits });
    const ask = async (path: string) => {
      const { port } = new URL(server.url);
      const socket = connect({ host: '127.0.0.1', port: Number(port), rejectUnauthorized: false });
      socket.on('error', () => undefined).write(getRequest(path));
      await Promise.race([once(socket, 'data'), once(socket, 'close')]);
      return socket.pause();
    };
    const idle = await ask('metadata/timestamp.json');
    assert.equal((await secureGet(server.url, tls.certFile)).status, 200);
    idle.resume();
    await until(() => idle.closed);
    const answered = await ask(file);
    await assert.rejects(secureGet(server.url, tls.certFile));
    answered.destroy();
  });

  it('closes a connection when its handshake does not end within its timeout', async () => {
    using dir = tempDir();
    const tls = readTlsFiles(await makeCertificate(dir.path, 'first'));
    const limits = serverLimits({ tlsHandshakeTimeoutMs: 200 }, 10_000);
    const listener = createListener({ limits, tls, uncounted: new BlockList(), onRefused: () => undefined });
    const server = listener.createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const silent = await hostileClient(`https://127.0.0.1:${(server.address() as AddressInfo).port}`, '');
    silent.resume();
    try {
      await until(() => silent.closed);
    } finally {
      silent.destroy();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it('ends without waiting for a client that never shakes hands', async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const files = await makeCertificate(dir.path, 'first');
    const limits = { closeDeadlineMs: 600_000, tlsHandshakeTimeoutMs: 600_000 };
    const options = { repository: dir.path, host: '127.0.0.1', port: 0, tls: files, limits };
    const server = await startServer(options);
    const silent = await hostileClient(server.url, '');
    assert.equal((await secureGet(server.url, files.certFile)).status, 200);
    await server.close();
    silent.destroy();
  });

  it('refuses a certificate and key that are no pair, or that are not there', async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const first = await makeCertificate(dir.path, 'first');
    const second = await makeCertificate(dir.path, 'second');
    fs.writeFileSync(dir.join('long.pem'), Buffer.alloc(1_000_001));
    for (const tls of [
      { certFile: first.certFile, keyFile: second.keyFile },
      { certFile: first.certFile, keyFile: dir.join('none.pem') },
      { certFile: first.certFile, keyFile: dir.join('long.pem') },
      { certFile: dir.join('.lock'), keyFile: first.keyFile },
    ]) {
      const start = startServer({ repository: dir.path, host: '127.0.0.1', port: 0, tls });
      await assert.rejects(start, isTlsInvalid);
    }
  });
});

describe('a server without TLS', () => {
  it('has no certificate to read again', async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const server = await startServer({ repository: dir.path, host: '127.0.0.1', port: 0 });
    server.reloadTls();
    await server.close();
  });
});

async function closing(options: ServerOptions) {
  const server = await startServer(options);
  return { url: server.url, [Symbol.asyncDispose]: () => server.close() };
}

function isTlsInvalid(error: unknown): boolean {
  return isWritError(error) && error.code === 'TLS_INVALID';
}
