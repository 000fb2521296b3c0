// A fleet server with little memory, and an attacker that makes it parse as much as possible.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { startWrit } from '../../kit/cli/writ-process.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { reportOf } from '../../kit/fleet/fleet-bench.js';
import { signedHost } from '../../kit/fleet/signed-host.js';
import { openRequest } from '../../kit/net/open-request.js';

const connections = 300;
/** More than the server needs at its start; 300 such bodies, parsed, need more than a gigabyte. */
const heap = { NODE_OPTIONS: '--max-old-space-size=160' };

describe('a fleet server with a heap of 160 MB', longCase, () => {
  it('survives 300 connections that end a body of thousands of objects at the same time, as strangers, with a token, and as a host', async () => {
    using dir = tempDir();
    const store = ['--store', dir.join('store')];
    const made = await runWrit(['fleet', 'token', 'create', '--for', 'hosts', ...store, '--json']);
    const token = String(jsonOf(made)['token']);
    await using server = startWrit(['fleet', 'serve', ...store, '--listen', '127.0.0.1:0'], heap);
    const [, url = ''] = await server.waitForStdout(/LISTENING (\S+)/);
    const host = signedHost(url, 'web-1');
    assert.equal((await host.enrol(token)).status, 200);
    assert.equal((await host.report()).status, 200);
    const objectsOf = (count: number): string => `"x":[${'{},'.repeat(count)}{}]}`;
    const report = `${JSON.stringify(reportOf('web-1')).slice(0, -1)},${objectsOf(32_000)}`;
    const enrolment = `{"schema":1,"type":"fleet.enrol","token":"writ_host_wrong",${objectsOf(64_000)}`;
    const bearer = { authorization: `Bearer ${token}` };
    const kinds = [
      { path: '/v1/enrol', body: enrolment, headers: {}, expected: [413] },
      { path: '/v1/enrol', body: enrolment, headers: bearer, expected: [400, 503] },
      // 409 when a report with a later counter arrived before.
      { path: '/v1/reports', body: report, headers: {}, expected: [200, 409, 429, 503] },
    ];
    for (const { path, body, headers, expected } of kinds) {
      const open = async () => {
        const signed = await host.headersOf(body);
        const announced = { ...signed, ...headers, 'content-length': String(body.length) };
        return openRequest(url, path, announced);
      };
      const requests = await Promise.all(Array.from({ length: connections }, open));
      for (const request of requests) request.send(body.slice(0, -1));
      for (const request of requests) request.send(body.slice(-1));
      const answers = await Promise.all(requests.map(({ answer }) => answer));
      for (const [status] of answers) assert.ok(expected.includes(status), `${path}: ${status}`);
      for (const request of requests) await request[Symbol.asyncDispose]();
    }
    assert.equal((await fetch(new URL('/healthz', url))).status, 200);
    assert.equal(server.child.exitCode, null);
  });
});
