// Failures, proxies and leases of a webhook. The cases of any store (test/kit/fleet/cases/webhook-cases.ts) have its normal use.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { createProxies } from '../../../../src/platform/net/proxies.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { until } from '../../../kit/assert/until.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { fleetBench } from '../../../kit/fleet/fleet-bench.js';
import { receiver, refusedOffer, startWebhook, summaryWith } from '../../../kit/fleet/webhook-bench.js';
import { makeCertificate } from '../../../kit/net/certificate.js';
import { startProxy } from '../../../kit/net/proxy-server.js';

const refused = summaryWith({ offers: [refusedOffer] });

describe('a webhook that fails', () => {
  it('warns at its start of a token and of authorities that cannot be read', async () => {
    using dir = tempDir();
    using memoryDir = tempDir(memory());
    await using bench = await fleetBench(memoryDir.join('store'), fakeClock());
    await using target = await receiver();
    const files = { tokenFile: dir.join('token'), caFile: dir.join('ca.crt') };
    await using hook = startWebhook(bench.store, { url: target.url, ...files });
    const warned = () => hook.log.lines.filter(({ code }) => code === 'FLEET_WEBHOOK_FAILED');
    await until(() => warned().length === 2);
    assert.deepEqual(
      warned().map(({ msg }) => /(token|ca\.crt): .*ENOENT/.exec(String(msg))?.[1]),
      ['token', 'ca.crt'],
    );
    assert.equal(target.requests.length, 0);
  });

  it('is FLEET_WEBHOOK_FAILED in the log, with the origin of the receiver and never its path', async () => {
    using dir = tempDir(memory());
    await using bench = await fleetBench(dir.join('store'), fakeClock());
    await using target = await receiver();
    target.answer = (response) => void response.writeHead(302, { location: '/elsewhere' }).end();
    await using hook = startWebhook(bench.store, { url: target.url });
    hook.summary = refused;
    await hook.runRounds();
    const [line] = hook.log.lines.filter(({ code }) => code === 'FLEET_WEBHOOK_FAILED');
    assert.deepEqual(
      [line?.['to'], line?.['alarms'], line?.['msg']],
      [target.url.origin, 1, 'the receiver was not notified: it answered 302'],
    );
    assert.doesNotMatch(JSON.stringify(hook.log.lines), /secret/);
  });
});

describe('a webhook behind a proxy', longCase, () => {
  it('is notified through the proxy', async () => {
    using dir = tempDir(memory());
    await using bench = await fleetBench(dir.join('store'), fakeClock());
    const { certFile, keyFile } = await makeCertificate(dir.path, 'hook');
    const bodies: string[] = [];
    const server = createServer(
      { cert: readFileSync(certFile), key: readFileSync(keyFile) },
      (request, response) => {
        request.setEncoding('utf8').on('data', (text: string) => bodies.push(text));
        request.on('end', () => response.end());
      },
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await using proxy = await startProxy({ ports: { 'hook.policy.test': port } });
    const proxies = createProxies(undefined, { HTTPS_PROXY: proxy.url });
    const target = { url: new URL('https://hook.policy.test/secret'), caFile: certFile, proxies };
    await using hook = startWebhook(bench.store, target);
    hook.summary = refused;
    await hook.runRounds();
    await until(() => hook.results.length > 0);
    server.close();
    assert.deepEqual([hook.results, proxy.lines], [['ok'], ['CONNECT hook.policy.test:443']]);
    assert.equal(bodies.length, 1);
  });
});

describe('two servers with a webhook', () => {
  it('are one at a time: the second is quiet while the first holds the lease', async () => {
    using dir = tempDir(memory());
    const clock = fakeClock();
    await using bench = await fleetBench(dir.join('store'), clock);
    await using first = await receiver();
    await using second = await receiver();
    await using one = startWebhook(bench.store, { url: first.url }, clock);
    await one.runRounds();
    await using two = startWebhook(bench.store, { url: second.url }, clock);
    one.summary = summaryWith();
    two.summary = refused;
    await two.runRounds(3);
    assert.equal(second.bodies.length, 0);
  });
});
