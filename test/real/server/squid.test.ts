// A host behind a real squid: a pull, a report and a notification use the proxy. Errors name the cause if squid refuses.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { askHttp } from '../../../src/platform/net/http-request.js';
import { createProxies } from '../../../src/platform/net/proxies.js';
import type { TlsFiles } from '../../../src/platform/serve/tls-files.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { type RunningServer, startServer } from '../../../src/server/server.js';
import { type WritSite, writSite } from '../../kit/agent/writ-site.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { makeCertificate } from '../../kit/net/certificate.js';
import { freePort } from '../../kit/programs/free-port.js';
import { needs } from '../../kit/programs/real-programs.js';
import { type RunningSquid, startSquid } from '../../kit/programs/squid.js';

describe('a host behind a real squid', { ...needs('squid', 'squid'), ...longCase }, () => {
  const dir = tempDir();
  const asked: string[] = [];
  let tls: TlsFiles;
  let site: WritSite;
  let server: RunningServer;
  let squid: RunningSquid;
  let other: Server;
  const ports = { repository: 0, other: 0, closed: 0, denied: 0 };
  const receiver = (): string => `https://hook.policy.test:${ports.other}`;
  const [good, bad] = [dir.join('good'), dir.join('bad')];

  before(async () => {
    tls = await makeCertificate(dir.path, 'server');
    site = writSite(dir, { sandbox: 'off' });
    await site.repository.publish({ 'block.rpz': 'version 1\n' });
    const repository = site.repository.directory;
    server = await startServer({ repository, host: '127.0.0.1', port: 0, tls });
    const keys = { cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) };
    other = createServer(keys, (request, response) => {
      asked.push(`${request.method} ${request.url}`);
      response.writeHead(403).end('{}');
    });
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    ports.repository = Number(new URL(server.url).port);
    ports.other = (other.address() as AddressInfo).port;
    [ports.closed, ports.denied] = [await freePort(), await freePort()];
    const names = ['a.policy.test', 'fleet.policy.test', 'hook.policy.test'];
    const allowed = [ports.repository, ports.other, ports.closed];
    squid = await startSquid({
      names,
      ports: allowed,
      user: 'writ',
      password: 'pass word',
    });
    writeFileSync(good, 'writ:pass word\n');
    writeFileSync(bad, 'writ:wrong\n');
    writeFileSync(dir.join('token'), 'writ_host_good');
  });
  after(async () => {
    await squid?.[Symbol.asyncDispose]();
    await server?.close();
    other?.close();
    dir[Symbol.dispose]();
  });

  async function pull(url: string, credentialsFile: string | undefined) {
    const keys = JSON.parse(readFileSync(site.config, 'utf8'));
    const ca = url.startsWith('https:') ? { ca: tls.certFile } : {};
    const proxy = { url: squid.url, ...(credentialsFile === undefined ? {} : { credentialsFile }) };
    const fleet = {
      url: `https://fleet.policy.test:${ports.other}/`,
      tokenFile: dir.join('token'),
      ca: tls.certFile,
    };
    // Long enough for squid on a busy machine.
    const limits = { timeouts: { connect: '1m', idle: '1m' } };
    writeFileSync(site.config, JSON.stringify({ ...keys, repository: { url, ...ca }, proxy, fleet, limits }));
    return site.writ('pull');
  }

  it('fetches a release by CONNECT and sends its report and a notification', async () => {
    const { exitCode, stdout, stderr } = await pull(`https://a.policy.test:${ports.repository}/`, good);
    assert.equal(exitCode, 0, stderr);
    assert.match(stdout, /^ACTIVATED/);
    const proxies = createProxies({ url: squid.url, credentialsFile: good }, {});
    const ca = readFileSync(tls.certFile, 'utf8');
    const bounds = { timeoutMs: 60_000, maxAnswerBytes: 1000, clock: systemClock };
    const url = new URL(`${receiver()}/hook`);
    const reply = await askHttp({ url, method: 'POST', body: '{}', ca, proxies, ...bounds });
    assert.deepEqual(reply, { kind: 'answered', status: 403, body: '{}' });
    assert.deepEqual(asked, ['POST /v1/enrol', 'POST /hook']);
  });

  const refusals = [
    {
      what: 'squid asks for a user and a password',
      where: () => `https://a.policy.test:${ports.repository}/`,
      credentials: undefined,
      expected: /\[PROXY_REFUSED\].* with status 407\n.*hint: Set `proxy` to a group with `credentialsFile`/s,
    },
    {
      what: 'the password is wrong',
      where: () => `https://a.policy.test:${ports.repository}/`,
      credentials: bad,
      expected: /\[PROXY_REFUSED\].* with status 407\n.*hint: Correct the user and the password in \S*bad\./s,
    },
    {
      what: 'its rules deny the port',
      where: () => `https://a.policy.test:${ports.denied}/`,
      credentials: good,
      expected:
        /\[PROXY_REFUSED\].* with status 403\n.*hint: Allow a\.policy\.test:\d+ in the rules of the proxy/s,
    },
    {
      what: 'it cannot resolve the name of the server',
      where: () => `https://unknown.policy.test:${ports.repository}/`,
      credentials: good,
      expected:
        /\[PROXY_REFUSED\].* with status 50[0-9]\n.*machine of the proxy that unknown\.policy\.test:\d+ has an/s,
    },
    {
      what: 'no server listens on the port',
      where: () => `https://a.policy.test:${ports.closed}/`,
      credentials: good,
      expected:
        /\[PROXY_REFUSED\].* with status 503\n.*machine of the proxy that a\.policy\.test:\d+ has an/s,
    },
    {
      what: 'its rules deny the port of an http server',
      where: () => `http://a.policy.test:${ports.denied}/`,
      credentials: good,
      expected:
        /\[SERVER_ERROR\].* with status 403 through the proxy \S+\n.*hint: Read the logs of the proxy and/s,
    },
    {
      what: 'no server listens on the port of an http server',
      where: () => `http://a.policy.test:${ports.closed}/`,
      credentials: good,
      expected:
        /\[SERVER_ERROR\].* with status 503 through the proxy \S+\n.*machine of the proxy that a\.policy\.test/s,
    },
  ];
  for (const { what, where, credentials, expected } of refusals)
    it(`names the proxy and the next step if ${what}`, async () => {
      const { exitCode, stdout, stderr } = await pull(where(), credentials);
      assert.equal(exitCode, 1);
      const text = `${stdout}${stderr}`;
      assert.match(text, expected);
      assert.ok(text.includes(squid.url), text);
    });
});
