// The fleet server or database of a wait fails from its start: the wait retries, as after a later failure.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { skippedPauses } from '../../kit/clock/skipped-pauses.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { makeCertificate } from '../../kit/net/certificate.js';
import { fleetStandIn } from '../../kit/net/fleet-server.js';

const facts = {
  ...{ schema: 1, type: 'fleet.wait', atMs: 1, of: 1, confirmed: 1, notified: 0, unconfirmed: 0, silent: 0 },
  ...{ refused: 0, refusedHosts: [], excepted: 0, later: 0, elsewhere: 0 },
};
const error = (code: string) => JSON.stringify({ code, message: 'no' });

/** Answers as scripted, and repeats the last answer. */
async function waitOn(script: readonly (readonly [status: number, body: string])[], within = '1m') {
  using dir = tempDir();
  await using fleet = await fleetStandIn();
  let asked = 0;
  fleet.bend = (_, response) => {
    const [status, body] = script[Math.min(asked, script.length - 1)] ?? [500, ''];
    asked += 1;
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  };
  const token = dir.join('token');
  writeFileSync(token, 'writ_people_abcdef\n', { mode: 0o600 });
  const connection = ['--url', fleet.url, '--token-file', token];
  const args = ['fleet', 'wait', 'dns', '42', '--within', within, ...connection];
  const run = await runWrit([...args, '--json'], { clock: skippedPauses(2000) });
  return { run, asked: () => asked };
}

describe('a wait that starts without its server', () => {
  it('continues when the server or its database answers again', async () => {
    const failures = ['FLEET_STORE_UNREACHABLE', 'FLEET_OVERLOADED'].map(
      (code) => [503, error(code)] as const,
    );
    const { run, asked } = await waitOn([...failures, [502, '<html>'], [200, JSON.stringify(facts)]]);
    assert.equal(run.exitCode, 0, run.stdout);
    assert.equal(jsonOf(run)['outcome'], 'reached');
    assert.equal(asked(), 4);
  });

  it('exits 1 with the reason at its deadline', async () => {
    const { run, asked } = await waitOn([[503, error('FLEET_STORE_UNREACHABLE')]], '6s');
    assert.deepEqual([run.exitCode, jsonOf(run)['code']], [1, 'FLEET_STORE_UNREACHABLE']);
    assert.equal(asked(), 4);
  });

  it('ends at once when a retry cannot help', async () => {
    const { run, asked } = await waitOn([[401, error('FLEET_TOKEN_REFUSED')]]);
    assert.deepEqual([run.exitCode, asked()], [1, 1]);
  });

  it('ends at once when the certificate of the server is not trusted', async () => {
    using dir = tempDir();
    const { keyFile, certFile } = await makeCertificate(dir.path, 'fleet');
    const tls = { key: readFileSync(keyFile), cert: readFileSync(certFile) };
    let connections = 0;
    const server = createServer(tls, (_, response) => response.end());
    server.on('connection', () => {
      connections += 1;
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      writeFileSync(dir.join('token'), 'writ_people_abcdef\n', { mode: 0o600 });
      const connection = ['--url', `https://127.0.0.1:${port}`, '--token-file', dir.join('token')];
      const clock = skippedPauses(2000);
      const run = await runWrit(['fleet', 'wait', 'dns', '42', ...connection, '--json'], { clock });
      const { code, message, hint } = jsonOf(run);
      assert.deepEqual([run.exitCode, code, connections], [1, 'FLEET_UNANSWERED', 1]);
      assert.match(String(message), /the certificate of the server is not trusted/);
      assert.match(String(hint), /^Give --ca FILE/);
    } finally {
      server.close();
    }
  });
});
