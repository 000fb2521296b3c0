// The commands that change a store, as processes of their own while a server enrols and stores reports of hundreds of hosts: a
// command of an operator on the machine of the server is never refused because the server writes.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { bundleAt } from '../../kit/fleet/fleet-bench.js';
import { servedFleet } from '../../kit/fleet/served-fleet.js';
import { signedHost } from '../../kit/fleet/signed-host.js';

const hosts = 300;
const together = 16;

describe('an embedded store in use by its server', longCase, () => {
  it('accepts tokens and approvals while hundreds of hosts enrol and report', async () => {
    await using fleet = await servedFleet();
    const token = await fleet.token('--for', 'hosts');
    const first = await fleet.host('web-0');
    const namesake = signedHost(fleet.url, 'web-0');
    assert.deepEqual(((await (await namesake.enrol(token)).json()) as { state: string }).state, 'waiting');
    let next = 1;
    const enrolling = Array.from({ length: together }, async () => {
      while (next < hosts) {
        const host = signedHost(fleet.url, `web-${next++}`);
        assert.equal((await host.enrol(token)).status, 200);
        assert.equal((await host.report({ bundles: [bundleAt(1)] })).status, 200);
      }
    });
    const onStore = (...args: readonly string[]) =>
      runWritProcess(['fleet', ...args, '--store', fleet.store, '--json']);
    const commands = [
      onStore('host', 'approve', namesake.key),
      onStore('host', 'retire', first.key),
      ...Array.from({ length: 6 }, () => onStore('token', 'create', '--for', 'hosts')),
    ];
    const ended = await Promise.all(commands);
    await Promise.all(enrolling);
    assert.deepEqual(
      ended.map(({ exitCode, stdout }) => (exitCode === 0 ? 0 : stdout)),
      commands.map(() => 0),
    );
    const listed = await onStore('token', 'list');
    assert.equal((jsonOf(listed)['tokens'] as readonly unknown[]).length, 8);
    const page = await onStore('hosts', '--where', 'state=accepted', '--limit', '1000');
    assert.equal((jsonOf(page)['hosts'] as readonly unknown[]).length, hosts);
  });
});
