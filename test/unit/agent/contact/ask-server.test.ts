// Contact with a server: any HTTP response counts, and no earlier event does. Real servers on loopback.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { describe, it } from 'node:test';
import { askServer } from '../../../../src/agent/contact/ask-server.js';
import { systemClock as clock } from '../../../../src/platform/time/clock.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { makeCertificate } from '../../../kit/net/certificate.js';

interface Listening extends AsyncDisposable {
  readonly port: number;
}

async function listen(server: net.Server): Promise<Listening> {
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket) => sockets.add(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as net.AddressInfo).port,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}

function ask(...urls: string[]): Promise<string | undefined> {
  const repository = urls.map((url) => ({ url }));
  return askServer({ repository }, 'repository', { clock, timeoutMs: 2000 });
}

function answering(status: number, seen: string[] = []): http.Server {
  return http.createServer((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.connection}`);
    response.writeHead(status, { location: 'http://elsewhere.invalid/', 'content-length': 1e9 });
    response.end();
  });
}

describe('contact with a server', () => {
  it('is any answer of HTTP, with any status', async () => {
    for (const status of [200, 302, 404, 429, 503]) {
      await using server = await listen(answering(status));
      assert.equal(await ask(`http://127.0.0.1:${server.port}/repo`), undefined, String(status));
    }
  });

  it('is tried with one request that has no body, on its own connection', async () => {
    const seen: string[] = [];
    const ports: unknown[] = [];
    const counted = answering(200, seen).on('connection', ({ remotePort }) => ports.push(remotePort));
    await using server = await listen(counted);
    const url = `http://127.0.0.1:${server.port}/repo`;
    assert.deepEqual([await ask(url), await ask(url)], [undefined, undefined]);
    assert.equal(ports.length, 2);
    assert.deepEqual(
      new Set(seen.map((one) => one.split(' ').slice(0, 2).join(' '))),
      new Set(['HEAD /repo/metadata/timestamp.json']),
    );
  });

  it(
    'is missing where the connection is refused, the name is unknown, the server is silent, or it does not answer in HTTP',
    longCase,
    async () => {
      const free = await listen(net.createServer());
      await free[Symbol.asyncDispose]();
      await using silent = await listen(net.createServer());
      await using other = await listen(net.createServer((socket) => socket.end('220 smtp ready\r\n')));
      const urls = [
        `127.0.0.1:${free.port}`,
        'policy.invalid',
        `127.0.0.1:${silent.port}`,
        `127.0.0.1:${other.port}`,
      ];
      for (const host of urls) assert.equal(typeof (await ask(`http://${host}/`)), 'string', host);
    },
  );

  it('is missing through a proxy that intercepts TLS with a certificate that is not trusted', async () => {
    using dir = tempDir();
    const [own, foreign] = [
      await makeCertificate(dir.path, 'server'),
      await makeCertificate(dir.path, 'proxy'),
    ];
    const files = { cert: readFileSync(foreign.certFile), key: readFileSync(foreign.keyFile) };
    await using proxy = await listen(https.createServer(files, (_, response) => void response.end()));
    const url = `https://127.0.0.1:${proxy.port}/`;
    const asked = (ca: string) =>
      askServer({ repository: [{ url, ca }] }, 'repository', { clock, timeoutMs: 5000 });
    assert.match((await asked(own.certFile)) ?? '', /CERT|SELF_SIGNED|VERIFY/);
    assert.equal(await asked(foreign.certFile), undefined);
  });

  it('needs one mirror of several, and never a directory', async () => {
    await using server = await listen(answering(200));
    const url = `http://127.0.0.1:${server.port}/`;
    assert.equal(await ask('http://policy.invalid/', 'file:///media/usb', url), undefined);
    assert.equal(typeof (await ask('file:///media/usb')), 'string');
  });

  it('is an answer of the fleet server if that server is asked', async () => {
    await using server = await listen(answering(404));
    const fleet = { url: `http://127.0.0.1:${server.port}/` };
    assert.equal(await askServer({ repository: [], fleet }, 'fleet', { clock }), undefined);
    assert.equal(typeof (await askServer({ repository: [] }, 'fleet', { clock })), 'string');
  });
});
