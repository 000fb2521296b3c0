// Both clients of HTTP through a small proxy: tunnels, whole URLs, credentials, and what an error is named.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { isWritError, type WritError } from '../../../../src/core/errors.js';
import { defaultTransportLimits } from '../../../../src/core/limits.js';
import type { Environment, ProxySetting } from '../../../../src/core/proxy-rules.js';
import { certificateEndsAtMs } from '../../../../src/platform/net/certificate.js';
import { openHttpClient } from '../../../../src/platform/net/http-client.js';
import { askHttp } from '../../../../src/platform/net/http-request.js';
import { createProxies } from '../../../../src/platform/net/proxies.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { makeCertificate } from '../../../kit/net/certificate.js';
import { startProxy } from '../../../kit/net/proxy-server.js';

describe('a request through a proxy', () => {
  const dir = tempDir();
  let ca = '';
  let tls = { cert: '', key: '' };
  let secure: Server;
  let plain: Server;
  const headers: (string | undefined)[] = [];
  const ports: Record<string, number> = {};

  before(async () => {
    const { certFile, keyFile } = await makeCertificate(dir.path, 'target');
    tls = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
    ca = tls.cert;
    secure = createHttps(tls, (request, response) => {
      headers.push(request.headers['proxy-authorization']);
      response.end(`secure ${request.url}`);
    });
    plain = createHttp((request, response) => response.end(`plain ${request.headers.host}${request.url}`));
    for (const server of [secure, plain])
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const secured = (secure.address() as AddressInfo).port;
    Object.assign(ports, {
      ...{ 'a.policy.test': secured, 'wrong.test': secured, '192.0.2.1': secured },
      'plain.test': (plain.address() as AddressInfo).port,
    });
  });
  after(() => {
    secure.close();
    plain.close();
    dir[Symbol.dispose]();
  });

  async function fetch(
    url: string,
    setting?: ProxySetting,
    env: Environment = {},
  ): Promise<string | WritError> {
    const limits = { ...defaultTransportLimits, connectTimeoutMs: 60_000 };
    const proxies = createProxies(setting, env);
    const client = openHttpClient(new URL('/', url), {
      limits,
      clock: systemClock,
      version: '0.0.0',
      ca,
      proxies,
    });
    try {
      const exchange = await client.open({ path: new URL(url).pathname.slice(1), totalTimeoutMs: 60_000 });
      let text = '';
      for await (const chunk of exchange.body()) text += chunk.toString();
      await exchange.end();
      return text;
    } catch (error) {
      assert.ok(isWritError(error), String(error));
      return error;
    } finally {
      await client.close();
    }
  }

  async function fails(code: string, url: string, setting: ProxySetting): Promise<WritError> {
    const error = await fetch(url, setting);
    assert.ok(typeof error !== 'string', String(error));
    assert.equal(error.code, code, error.message);
    assert.ok(error.message.includes(new URL(url).origin), error.message);
    return error;
  }

  it('reaches an https server by CONNECT, and an http server by the whole URL', async () => {
    await using proxy = await startProxy({ ports });
    const env = { HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url };
    assert.equal(await fetch('https://a.policy.test/x', undefined, env), 'secure /x');
    assert.equal(await fetch('http://plain.test/y', undefined, env), 'plain plain.test/y');
    assert.deepEqual(proxy.lines, ['CONNECT a.policy.test:443', 'GET http://plain.test/y']);
    assert.deepEqual(proxy.credentials, [undefined, undefined]);
  });

  it('goes through an https proxy that its own authority vouches for', async () => {
    await using proxy = await startProxy({ ports, tls });
    const caFile = dir.join('target.crt');
    assert.equal(await fetch('https://a.policy.test/x', { url: proxy.url, ca: caFile }), 'secure /x');
    assert.equal(await fetch('http://plain.test/y', { url: proxy.url, ca: caFile }), 'plain plain.test/y');
    const error = await fails('SERVER_UNREACHABLE', 'https://a.policy.test/x', { url: proxy.url });
    assert.match(
      error.message,
      /the proxy https:.* the certificate .*not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
    );
  });

  it('verifies the certificate of the server as without a proxy', async () => {
    await using proxy = await startProxy({ ports });
    const error = await fails('SERVER_UNREACHABLE', 'https://wrong.test/', { url: proxy.url });
    assert.equal(error.facts['errno'], 'ERR_TLS_CERT_ALTNAME_INVALID');
    assert.equal(error.facts['proxy'], undefined);
  });

  it('sends the credentials of the file to the proxy alone, and reads the file again for each connection', async () => {
    await using proxy = await startProxy({
      ports,
      refuse: (sent) => (sent === `Basic ${Buffer.from('user:pä ss').toString('base64')}` ? undefined : 407),
    });
    const credentialsFile = dir.join('credentials');
    const setting = { url: proxy.url, credentialsFile };
    headers.length = 0;
    writeFileSync(credentialsFile, 'user:old-secret\n');
    for (const url of ['https://a.policy.test/', 'http://plain.test/']) {
      const error = await fails('PROXY_REFUSED', url, setting);
      assert.deepEqual([error.facts['status'], error.facts['proxy']], [407, proxy.url]);
      assert.ok(error.hint.includes(credentialsFile), error.hint);
      assert.doesNotMatch(
        JSON.stringify([error.message, error.facts, error.hint, String(error.cause)]),
        /secret|dXNlcj/,
      );
    }
    writeFileSync(credentialsFile, 'user:pä ss\n');
    assert.equal(await fetch('https://a.policy.test/', setting), 'secure /');
    assert.equal(await fetch('http://plain.test/', setting), 'plain plain.test/');
    assert.deepEqual(headers, [undefined]);
    const env = { HTTPS_PROXY: proxy.url.replace('//', '//user:p%C3%A4%20ss@') };
    assert.equal(await fetch('https://a.policy.test/', undefined, env), 'secure /');
  });

  it('has a hint for a 407 without credentials', async () => {
    await using proxy = await startProxy({ ports, refuse: () => 407 });
    const error = await fails('PROXY_REFUSED', 'https://a.policy.test/', { url: proxy.url });
    assert.match(error.hint, /`credentialsFile`, a file with one line, user:password/);
  });

  for (const [what, text] of [
    ['is not there', undefined],
    ['has no colon', 'user'],
    ['has two lines', 'user:a\nuser:b\n'],
    ['would add a header', 'user:a\r\nX-Other: b'],
  ] as const)
    it(`sends nothing where the file of credentials ${what}`, async () => {
      await using proxy = await startProxy({ ports });
      const credentialsFile = dir.join(`credentials ${what}`);
      if (text !== undefined) writeFileSync(credentialsFile, text);
      const error = await fetch('https://a.policy.test/', { url: proxy.url, credentialsFile });
      assert.ok(typeof error !== 'string' && error.code === 'PROXY_INVALID', String(error));
      assert.ok(error.message.includes(credentialsFile), error.message);
      assert.deepEqual(proxy.lines, []);
    });

  it('names the proxy and its status where CONNECT is refused', async () => {
    await using proxy = await startProxy({ ports, refuse: () => 403 });
    const error = await fails('PROXY_REFUSED', 'https://a.policy.test/', { url: proxy.url });
    assert.match(
      error.message,
      /the proxy http:\/\/127\.0\.0\.1:\d+ answered CONNECT a\.policy\.test:443 with status 403$/,
    );
    assert.match(error.hint, /^Allow a\.policy\.test:443 in the rules of the proxy/);
  });

  it('names the unreachable server if the proxy answers CONNECT with 503', async () => {
    await using proxy = await startProxy({ ports });
    const error = await fails('PROXY_REFUSED', 'https://unknown.test/', { url: proxy.url });
    assert.match(error.hint, /^Check on the machine of the proxy that unknown\.test:443 has an address/);
  });

  it('names the proxy where an http server is answered for', async () => {
    await using proxy = await startProxy({
      ports,
      refuse: () => (proxy.lines.at(-1)?.includes('plain.test') ? 403 : undefined),
    });
    const error = await fails('SERVER_ERROR', 'http://plain.test/', { url: proxy.url });
    assert.match(error.message, /status 403 through the proxy http:\/\/127\.0\.0\.1:\d+$/);
    assert.deepEqual([error.facts['status'], error.facts['proxy']], [403, proxy.url]);
    assert.match(error.hint, /logs of the proxy and of the server/);
    const away = await fails('SERVER_ERROR', 'http://unknown.test/', { url: proxy.url });
    assert.match(away.hint, /^Check on the machine of the proxy that unknown\.test has an address/);
  });

  it('names the proxy and not the server where the proxy is away', async () => {
    const proxy = await startProxy({ ports });
    await proxy[Symbol.asyncDispose]();
    for (const url of ['https://a.policy.test/', 'http://plain.test/']) {
      const error = await fails('SERVER_UNREACHABLE', url, { url: proxy.url });
      assert.match(
        error.message,
        /the proxy http:\/\/127\.0\.0\.1:\d+ cannot be used: no server listens there/,
      );
      assert.deepEqual([error.facts['proxy'], error.facts['errno']], [proxy.url, 'ECONNREFUSED']);
    }
  });

  /** With short timeouts, of which the others must not matter. */
  async function failsSilently(
    base: string,
    proxy: string,
    given: Partial<typeof defaultTransportLimits>,
    totalTimeoutMs = 300_000,
  ): Promise<WritError> {
    const long = { connectTimeoutMs: 300_000, idleTimeoutMs: 300_000 };
    const limits = { ...defaultTransportLimits, ...long, ...given };
    const proxies = createProxies({ url: proxy }, {});
    const client = openHttpClient(new URL(base), {
      limits,
      clock: systemClock,
      version: '0.0.0',
      ca,
      proxies,
    });
    const error = await client.open({ path: '', totalTimeoutMs }).catch((cause: unknown) => cause);
    await client.close();
    assert.ok(isWritError(error), String(error));
    return error;
  }

  it('ends at the timeout to connect where the proxy does not answer CONNECT', async () => {
    await using proxy = await startProxy({ ports, silent: 'always' });
    const error = await failsSilently('https://a.policy.test/', proxy.url, { connectTimeoutMs: 100 });
    assert.equal(error.code, 'SERVER_UNREACHABLE');
    assert.match(error.message, /did not answer CONNECT a\.policy\.test:443 in 100 ms/);
    assert.match(error.hint, /on the machine of the proxy that a\.policy\.test:443 has an address/);
  });

  it('names the proxy where nothing comes through a tunnel that it opened', async () => {
    await using proxy = await startProxy({ ports, silent: 'in tunnels' });
    const error = await failsSilently('https://a.policy.test/', proxy.url, { connectTimeoutMs: 100 });
    assert.equal(error.code, 'SERVER_UNREACHABLE');
    assert.ok(
      error.message.includes(`the proxy ${proxy.url} opened a tunnel to a.policy.test:443`),
      error.message,
    );
    assert.deepEqual([error.facts['proxy'], error.facts['errno']], [proxy.url, 'ETIMEDOUT']);
  });

  it('names the proxy where an http server does not answer through it', async () => {
    await using proxy = await startProxy({ ports, silent: 'always' });
    for (const [given, totalTimeoutMs, text] of [
      [{ idleTimeoutMs: 100 }, 300_000, 'no answer to the request (UND_ERR_HEADERS_TIMEOUT)'],
      [{}, 100, 'not done after 100 ms'],
    ] as const) {
      const error = await failsSilently('http://plain.test/', proxy.url, given, totalTimeoutMs);
      assert.equal(error.code, 'DOWNLOAD_TIMEOUT');
      assert.equal(error.message, `http://plain.test/: ${text} through the proxy ${proxy.url}`);
      assert.match(error.hint, /on the machine of the proxy that plain\.test has an address/);
      assert.equal(error.facts['proxy'], proxy.url);
    }
  });

  it('ends at its own deadline where that is shorter than the timeout to connect', async () => {
    await using proxy = await startProxy({ ports, silent: 'always' });
    const base = 'https://a.policy.test/';
    const error = await failsSilently(base, proxy.url, {}, 100);
    assert.equal(error.code, 'DOWNLOAD_TIMEOUT');
    assert.equal(error.message, `${base}: not done after 100 ms`);
    const proxies = createProxies({ url: proxy.url }, {});
    const bounds = { timeoutMs: 100, maxAnswerBytes: 100, clock: systemClock, proxies };
    const reply = await askHttp({ url: new URL(base), method: 'GET', ca, ...bounds });
    assert.deepEqual(reply, { kind: 'failed', reason: 'no answer in 100 ms' });
  });

  it('is not sent to the proxy for a loopback address', async () => {
    await using proxy = await startProxy({ ports });
    const { port } = plain.address() as AddressInfo;
    assert.equal(await fetch(`http://127.0.0.1:${port}/z`, { url: proxy.url }), `plain 127.0.0.1:${port}/z`);
    assert.deepEqual(proxy.lines, []);
  });

  it('is refused where the proxy of the environment cannot be used', async () => {
    const error = await fetch('https://a.policy.test/', undefined, {
      HTTPS_PROXY: 'socks5://user:secret@p.test',
    });
    assert.ok(typeof error !== 'string' && error.code === 'PROXY_INVALID');
    assert.match(
      error.message,
      /^https:\/\/a\.policy\.test: the URL of the proxy in HTTPS_PROXY begins with socks5:/,
    );
    assert.doesNotMatch(error.message, /secret/);
  });

  it('finds the certificate of the server', async () => {
    await using proxy = await startProxy({ ports });
    const place = { host: 'a.policy.test', port: 443, timeoutMs: 60_000 };
    const endsAtMs = await certificateEndsAtMs({ ...place, proxies: createProxies({ url: proxy.url }, {}) });
    assert.ok(endsAtMs !== undefined && endsAtMs > Date.now());
  });

  describe('of one question', () => {
    const bounds = {
      method: 'POST',
      body: '{}',
      timeoutMs: 60_000,
      maxAnswerBytes: 1000,
      clock: systemClock,
    };

    it('takes the proxy only where the caller gives one', async () => {
      await using proxy = await startProxy({ ports });
      const url = new URL('https://a.policy.test/hook?a=1');
      const proxies = createProxies({ url: proxy.url }, {});
      const reply = await askHttp({ ...bounds, url, ca, proxies });
      assert.deepEqual(reply, { kind: 'answered', status: 200, body: 'secure /hook?a=1' });
      const http = await askHttp({ ...bounds, url: new URL('http://plain.test/'), proxies });
      assert.equal(http.kind === 'answered' && http.body, 'plain plain.test/');
      const { port } = plain.address() as AddressInfo;
      const local = await askHttp({ ...bounds, url: new URL(`http://127.0.0.1:${port}/`) });
      assert.equal(local.kind, 'answered');
      assert.deepEqual(proxy.lines, ['CONNECT a.policy.test:443', 'POST http://plain.test/']);
    });

    it('is not answered by an error of the proxy', async () => {
      await using proxy = await startProxy({ ports });
      const proxies = createProxies({ url: proxy.url }, {});
      for (const target of ['http://unknown.test/', 'https://unknown.test/']) {
        const reply = await askHttp({ ...bounds, url: new URL(target), ca, proxies });
        assert.ok(reply.kind === 'failed', target);
        assert.match(reply.reason, /^the proxy http:.* with status 503$/);
        assert.match(reply.hint ?? '', /on the machine of the proxy that unknown\.test/);
      }
    });
  });
});
