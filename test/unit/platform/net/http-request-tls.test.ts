import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { askHttp } from '../../../../src/platform/net/http-request.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { makeCertificate } from '../../../kit/net/certificate.js';

describe('a question over TLS', () => {
  it('is answered only by a server that the given authority certified', async () => {
    using dir = tempDir();
    const { certFile, keyFile } = await makeCertificate(dir.path, 'fleet');
    const ca = readFileSync(certFile, 'utf8');
    const server = createServer({ cert: ca, key: readFileSync(keyFile) }, (_, response) =>
      response.writeHead(503, { 'retry-after': '7' }).end('later'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      const question = { url, method: 'GET', timeoutMs: 60_000, maxAnswerBytes: 100, clock: systemClock };
      assert.deepEqual(await askHttp({ ...question, ca }), {
        ...{ kind: 'answered', status: 503, body: 'later', retryAfterMs: 7000 },
      });
      const unknown = await askHttp(question);
      assert.equal(unknown.kind === 'failed' && unknown.reason, 'DEPTH_ZERO_SELF_SIGNED_CERT');
    } finally {
      server.close();
    }
  });
});
