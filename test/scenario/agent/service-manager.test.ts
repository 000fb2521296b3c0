// A real agent and a real server under a real datagram socket: what a service manager hears, in its order.
import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { until } from '../../kit/assert/until.js';
import { startWrit, type WritProcess } from '../../kit/cli/writ-process.js';
import { listenForNotices, type NotifyListener } from '../../kit/net/notify-listener.js';
import { needs } from '../../kit/programs/real-programs.js';

const real = { ...needs('python3', 'python3'), ...needs('systemd-notify', 'systemd') };
const nobody = 'http://127.0.0.1:9/';

function startAgent(
  host: InstalledHost,
  manager: NotifyListener,
  env: Record<string, string> = {},
): WritProcess {
  return startWrit(['agent', '--config', host.config], { NOTIFY_SOCKET: manager.socket, ...env });
}

/** Only what changes the unit's state, as the first words of its datagrams. */
function turns(manager: NotifyListener): string[] {
  const words = ['READY=1', 'RELOADING=1', 'STOPPING=1'];
  return manager.datagrams.map(({ lines }) => lines[0] ?? '').filter((word) => words.includes(word));
}

describe('an agent under a service manager', real, () => {
  let installed: InstalledHost;
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  it('is ready at once with a stored policy, though no server answers', async () => {
    using host = copyHost(installed);
    host.configure({ repository: nobody });
    await using manager = await listenForNotices(host.dir.join('notify'));
    await using agent = startAgent(host, manager);
    await manager.has('READY=1');
    const [ready] = manager.withLine('READY=1');
    assert.equal(ready?.lines[0], 'READY=1');
    assert.match(ready?.lines[1] ?? '', /^STATUS=generation 1 \(dns-edge 1\) is active/);
    agent.child.kill('SIGTERM');
    assert.equal((await agent.ended).exitCode, 0);
    await until(() => manager.withLine('STOPPING=1').length > 0);
    assert.deepEqual(turns(manager), ['READY=1', 'STOPPING=1']);
  });

  it('is not ready without a policy, until the first one is active', async () => {
    using host = copyHost(installed);
    for (const place of ['state', 'run']) rmSync(host.dir.join(place), { recursive: true });
    host.configure({ repository: nobody });
    await using manager = await listenForNotices(host.dir.join('notify'));
    await using agent = startAgent(host, manager);
    await until(() => manager.datagrams.some(({ lines }) => lines[0]?.includes('the last try: failed')));
    assert.deepEqual(turns(manager), []);
    // Not ready: a reload is not told either, but it leads to the first policy.
    host.configure({});
    agent.child.kill('SIGHUP');
    await manager.has('READY=1');
    assert.deepEqual(turns(manager), ['READY=1']);
    const [ready] = manager.withLine('READY=1');
    assert.match(ready?.lines[1] ?? '', /^STATUS=generation \d+ \(dns-edge 2\) is active/);
  });

  it('tells a reload with its time, and that it is over', async () => {
    using host = copyHost(installed);
    await using manager = await listenForNotices(host.dir.join('notify'));
    await using agent = startAgent(host, manager);
    await manager.has('READY=1');
    agent.child.kill('SIGHUP');
    await until(() => turns(manager).length === 3);
    assert.deepEqual(turns(manager), ['READY=1', 'RELOADING=1', 'READY=1']);
    const [first] = manager.withLine('READY=1');
    const [reloading] = manager.withLine('RELOADING=1');
    const usec = Number(/^MONOTONIC_USEC=(\d+)$/.exec(reloading?.lines[1] ?? '')?.[1]);
    assert.ok((first?.usec ?? 0) < usec && usec <= (reloading?.usec ?? 0), `${usec}`);
  });

  it('pings the watchdog that watches it', async () => {
    using host = copyHost(installed);
    await using manager = await listenForNotices(host.dir.join('notify'));
    await using _agent = startAgent(host, manager, { WATCHDOG_USEC: '400000' });
    await until(() => manager.withLine('WATCHDOG=1').length >= 3);
  });

  it('is silent to the watchdog when its event loop hangs', async () => {
    using host = copyHost(installed);
    await using manager = await listenForNotices(host.dir.join('notify'));
    const watchdogMs = 100;
    await using agent = startAgent(host, manager, { WATCHDOG_USEC: `${watchdogMs * 1000}` });
    await until(() => manager.withLine('WATCHDOG=1').length >= 2);
    agent.child.kill('SIGSTOP');
    await until(() => isStopped(agent.child.pid ?? 0));
    // A ping may be on its way.
    await manager.caughtUp();
    const before = manager.withLine('WATCHDOG=1').length;
    // Silence is a matter of time, and three pings would have been due.
    await setTimeout(1.5 * watchdogMs);
    await manager.caughtUp();
    assert.equal(manager.withLine('WATCHDOG=1').length, before);
    agent.child.kill('SIGCONT');
    await until(() => manager.withLine('WATCHDOG=1').length > before);
  });

  it('says why it does not start', async () => {
    using host = copyHost(installed);
    host.configure({ bundles: [] });
    await using manager = await listenForNotices(host.dir.join('notify'));
    await using agent = startAgent(host, manager);
    assert.equal((await agent.ended).exitCode, 2);
    await until(() => manager.datagrams.some(({ lines }) => lines[0]?.startsWith('STATUS=CONFIG_INVALID')));
    assert.deepEqual(turns(manager), []);
  });
});

/** And whoever carries a word of it has ended. */
function isStopped(pid: number): boolean {
  const stateOf = (one: number | string): string | undefined =>
    /^State:\t(.)/m.exec(readFileSync(`/proc/${one}/status`, 'utf8'))?.[1];
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return stateOf(pid) === 'T' && children.split(' ').every((child) => child === '' || stateOf(child) === 'Z');
}

describe('a server under a service manager', real, () => {
  it('is ready when it listens, and says reloads and its end', async () => {
    using host = await installHost();
    await using manager = await listenForNotices(host.dir.join('notify'));
    const args = ['serve', '--repository', host.repository, '--listen', '127.0.0.1:0'];
    await using server = startWrit(args, { NOTIFY_SOCKET: manager.socket, WATCHDOG_USEC: '400000' });
    const [url] = await server.waitForStdout(/http:\/\/127\.0\.0\.1:\d+/);
    await manager.has(`STATUS=listening on ${url}`);
    server.child.kill('SIGHUP');
    await until(() => turns(manager).length === 3);
    await until(() => manager.withLine('WATCHDOG=1').length >= 2);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).exitCode, 0);
    await until(() => turns(manager).length === 4);
    assert.deepEqual(turns(manager), ['READY=1', 'RELOADING=1', 'READY=1', 'STOPPING=1']);
  });
});
