// A fleet server on plain loopback behind a real nginx that ends TLS, with the block of docs/fleet.md: sessions, reports and events.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { reportOf } from '../../kit/fleet/fleet-bench.js';
import { type ServedFleet, servedFleet } from '../../kit/fleet/served-fleet.js';
import { makeCertificate } from '../../kit/net/certificate.js';
import { type RunningNginx, startNginx } from '../../kit/programs/nginx.js';
import { needs } from '../../kit/programs/real-programs.js';
import { projectRoot } from '../../kit/sources/source-files.js';

describe('a fleet server behind a real nginx that ends TLS', needs('nginx', 'nginx-light'), () => {
  let fleet: ServedFleet;
  let nginx: RunningNginx;
  let token: string;
  let ca: string;

  before(async () => {
    fleet = await servedFleet('--public-url', 'https://fleet.policy.test');
    const { certFile, keyFile } = await makeCertificate(fleet.dir.path, 'fleet');
    ca = readFileSync(certFile, 'utf8');
    const page = readFileSync(join(projectRoot, 'docs/fleet.md'), 'utf8');
    const [, block = ''] = /```nginx\n([\s\S]*?)```/.exec(page) ?? [];
    assert.match(block, /^server \{/);
    mkdirSync(fleet.dir.join('nginx'));
    nginx = await startNginx(fleet.dir.join('nginx'), (listen) =>
      block
        .replace('listen 443 ssl;', `listen ${listen} ssl;`)
        .replace('/etc/nginx/fleet.crt', certFile)
        .replace('/etc/nginx/fleet.pem', keyFile)
        .replace('http://127.0.0.1:8090', fleet.url),
    );
    token = await fleet.token('--for', 'people', '--role', 'view');
  });
  after(async () => {
    await nginx?.[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
  });

  async function ask(
    path: string,
    { headers = {}, body }: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<IncomingMessage> {
    const { port } = new URL(nginx.url);
    const sent = request({
      ...{ host: '127.0.0.1', port, path, ca, method: body === undefined ? 'GET' : 'POST', agent: false },
      headers: {
        ...{ host: 'fleet.policy.test', 'content-type': 'application/x-www-form-urlencoded' },
        ...headers,
      },
    });
    sent.end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return answer;
  }

  const signIn = async (site: string): Promise<IncomingMessage> => {
    const answer = await ask('/sign-in', {
      headers: { 'sec-fetch-site': site },
      body: `token=${encodeURIComponent(token)}`,
    });
    answer.resume();
    return answer;
  };

  it('gives a session a Secure cookie of this host alone, and deletes it', async () => {
    const { statusCode, headers } = await signIn('same-origin');
    assert.deepEqual([statusCode, headers.location], [303, '/']);
    const [cookie = ''] = headers['set-cookie'] ?? [];
    assert.match(cookie, /^__Host-writ_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; .*Secure$/);
    const page = await ask('/', { headers: { cookie: cookie.split(';')[0] ?? '' } });
    page.resume();
    assert.equal(page.statusCode, 200);
    assert.equal((await signIn('cross-site')).statusCode, 403);
  });

  it('accepts the report of a host, and sends its event', async () => {
    const events = await ask('/v1/events', { headers: { authorization: `Bearer ${token}` } });
    assert.equal(events.statusCode, 200);
    const host = await fleet.host('web-1');
    const body = JSON.stringify(reportOf('web-1'));
    const report = await ask('/v1/reports', { headers: await host.headersOf(body), body });
    report.resume();
    assert.equal(report.statusCode, 200);
    let text = '';
    for await (const chunk of events) {
      text += String(chunk);
      if (text.includes('"accepted":1')) break;
    }
    assert.match(text, /^event: summary$/m);
  });
});
