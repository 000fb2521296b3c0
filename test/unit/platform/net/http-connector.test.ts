// Both clients of HTTP over the connector: names, literal addresses, and TLS on the connection that came about.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { isWritError } from '../../../../src/core/errors.js';
import { defaultTransportLimits } from '../../../../src/core/limits.js';
import { isCertificateErrno } from '../../../../src/platform/net/connect-failure.js';
import { openHttpClient } from '../../../../src/platform/net/http-client.js';
import { askHttp } from '../../../../src/platform/net/http-request.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { makeCertificate, makeCertificateFor } from '../../../kit/net/certificate.js';

const bounds = { method: 'GET', timeoutMs: 60_000, maxAnswerBytes: 100, clock: systemClock };

async function listen(context: TestContext, server: Server, address: string): Promise<number> {
  server.listen(0, address);
  await once(server, 'listening');
  context.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

describe('a client of HTTP', () => {
  for (const [address, host] of [
    ['127.0.0.1', 'localhost'],
    ['::1', '[::1]'],
  ] as const)
    it(`reaches a server that listens on ${address} as ${host}`, async (context) => {
      const port = await listen(
        context,
        createHttp((_, response) => response.end('here')),
        address,
      );
      const reply = await askHttp({ ...bounds, url: new URL(`http://${host}:${port}/`) });
      assert.deepEqual(reply, { kind: 'answered', status: 200, body: 'here' });
    });

  it('compares the certificate with the name in the URL, and not with the address', async (context) => {
    using dir = tempDir();
    const { certFile, keyFile } = await makeCertificate(dir.path, 'server');
    const ca = readFileSync(certFile, 'utf8');
    const server = createHttps({ cert: ca, key: readFileSync(keyFile) }, (_, response) => response.end());
    const port = await listen(context, server, '127.0.0.1');
    const reply = await askHttp({ ...bounds, ca, url: new URL(`https://localhost:${port}/`) });
    assert.equal(reply.kind === 'failed' && reply.reason, 'ERR_TLS_CERT_ALTNAME_INVALID');
  });

  for (const [what, errno, from, to, hint] of [
    [
      'not valid yet',
      'CERT_NOT_YET_VALID',
      '20980101000000Z',
      '20990101000000Z',
      /^Check the clock of this host: /,
    ],
    ['not valid any more', 'CERT_HAS_EXPIRED', '20010101000000Z', '20020101000000Z', /it is right, renew/],
  ] as const)
    it(`names both times where the certificate is ${what}, and the clock first`, async (context) => {
      using dir = tempDir();
      const { certFile, keyFile } = await makeCertificateFor(dir.path, { from, to });
      const ca = readFileSync(certFile, 'utf8');
      const server = createHttps({ cert: ca, key: readFileSync(keyFile) }, (_, response) => response.end());
      const port = await listen(context, server, '127.0.0.1');
      const url = new URL(`https://127.0.0.1:${port}/`);
      const limits = defaultTransportLimits;
      const client = openHttpClient(url, { limits, clock: systemClock, version: '0.0.0', ca });
      const error = await client.open({ path: 'a', totalTimeoutMs: 60_000 }).catch((cause: unknown) => cause);
      await client.close();
      assert.ok(isWritError(error));
      assert.deepEqual([error.code, error.facts['errno']], ['SERVER_UNREACHABLE', errno]);
      const year = (stamp: string) => `${stamp.slice(0, 4)}-01-01 00:00:00 UTC`;
      const times = `valid from ${year(from)} to ${year(to)}, and the time of this host is 2`;
      assert.ok(error.message.includes(times), error.message);
      assert.match(error.hint, hint);
      const reply = await askHttp({ ...bounds, ca, url });
      assert.equal(reply.kind, 'failed');
      assert.ok(reply.reason.includes(times) && isCertificateErrno(reply.reason), reply.reason);
    });

  it('names each address of a name that does not answer', async (context) => {
    const server = createHttp();
    const port = await listen(context, server, '127.0.0.1');
    await new Promise((resolve) => server.close(resolve));
    const limits = defaultTransportLimits;
    const url = new URL(`http://localhost:${port}/`);
    const client = openHttpClient(url, { limits, clock: systemClock, version: '0.0.0' });
    const error = await client.open({ path: 'a', totalTimeoutMs: 60_000 }).catch((cause: unknown) => cause);
    await client.close();
    assert.ok(isWritError(error));
    assert.equal(error.code, 'SERVER_UNREACHABLE');
    assert.equal(error.facts['errno'], 'ECONNREFUSED');
    assert.match(error.message, /: no server listens there \(.*127\.0\.0\.1 ECONNREFUSED.*\)$/);
    const reply = await askHttp({ ...bounds, url });
    assert.match(reply.kind === 'failed' ? reply.reason : '', /127\.0\.0\.1 ECONNREFUSED/);
  });
});
