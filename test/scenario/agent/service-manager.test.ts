// A real agent and a real server with a real datagram socket: the messages to a service manager, in their order.
import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { startWrit, type WritProcess } from '../../kit/cli/writ-process.js';
import { listenForNotices, type NotifyListener } from '../../kit/net/notify-listener.js';
import { needs } from '../../kit/programs/real-programs.js';

const real = { ...needs('python3', 'python3'), ...needs('systemd-notify', 'systemd') };
const closedPort = 'http://127.0.0.1:9/';

function startAgent(
  host: InstalledHost,
  manager: NotifyListener,
  env: Record<string, string> = {},
): WritProcess {
  return startWrit(['agent', '--config', host.config], { NOTIFY_SOCKET: manager.socket, ...env });
}

/** The first lines of the datagrams that change the state of the unit. */
function stateChanges(manager: NotifyListener): string[] {
  const states = ['READY=1', 'RELOADING=1', 'STOPPING=1'];
  return manager.datagrams.map(({ lines }) => lines[0] ?? '').filter((line) => states.includes(line));
}

describe('an agent under a service manager', { ...real, ...longCase }, () => {
  let installed: InstalledHost;
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  it('is ready at once with a stored policy, also when no server answers', async () => {
    using host = copyHost(installed);
    host.configure({ repository: closedPort });
    await using manager = await listenForNotices(host.dir.join('notify'));
    await using agent = startAgent(host, manager);
    await manager.has('READY=1');
    const [ready] = manager.withLine('READY=1');
    assert.equal(ready?.lines[0], 'READY=1');
    assert.match(ready?.lines[1] ?? '', /^STATUS=generation 1 \(dns-edge 1\) is active/);
    agent.child.kill('SIGTERM');
    assert.equal((await agent.ended).exitCode, 0);
    await until(() => manager.withLine('STOPPING=1').length > 0);
    assert.deepEqual(stateChanges(manager), ['READY=1', 'STOPPING=1']);
  });

  it('is not ready until its first policy is active', async () => {
    using host = copyHost(installed);
    for (const name of ['state', 'run']) rmSync(host.dir.join(name), { recursive: true });
    host.configure({ repository: closedPort });
    await using manager = await listenForNotices(host.dir.join('notify'));
    await using agent = startAgent(host, manager);
    await until(() => manager.datagrams.some(({ lines }) => lines[0]?.includes('the last try: failed')));
    assert.deepEqual(stateChanges(manager), []);
    // A reload before READY=1 is not reported, and activates the first policy.
    host.configure({});
    agent.child.kill('SIGHUP');
    await manager.has('READY=1');
    assert.deepEqual(stateChanges(manager), ['READY=1']);
    const [ready] = manager.withLine('READY=1');
    assert.match(ready?.lines[1] ?? '', /^STATUS=generation \d+ \(dns-edge 2\) is active/);
  });

  it('reports a reload with its time, and its end', async () => {
    using host = copyHost(installed);
    await using manager = await listenForNotices(host.dir.join('notify'));
    await using agent = startAgent(host, manager);
    await manager.has('READY=1');
    agent.child.kill('SIGHUP');
    await until(() => stateChanges(manager).length === 3);
    assert.deepEqual(stateChanges(manager), ['READY=1', 'RELOADING=1', 'READY=1']);
    const [first] = manager.withLine('READY=1');
    const [reloading] = manager.withLine('RELOADING=1');
    const usec = Number(/^MONOTONIC_USEC=(\d+)$/.exec(reloading?.lines[1] ?? '')?.[1]);
    assert.ok((first?.usec ?? 0) < usec && usec <= (reloading?.usec ?? 0), `${usec}`);
  });

  it('pings the watchdog', async () => {
    using host = copyHost(installed);
    await using manager = await listenForNotices(host.dir.join('notify'));
    await using _agent = startAgent(host, manager, { WATCHDOG_USEC: '400000' });
    await until(() => manager.withLine('WATCHDOG=1').length >= 3);
  });

  it('sends no ping to the watchdog when its event loop hangs', async () => {
    using host = copyHost(installed);
    await using manager = await listenForNotices(host.dir.join('notify'));
    const watchdogMs = 100;
    await using agent = startAgent(host, manager, { WATCHDOG_USEC: `${watchdogMs * 1000}` });
    await until(() => manager.withLine('WATCHDOG=1').length >= 2);
    agent.child.kill('SIGSTOP');
    await until(() => isStopped(agent.child.pid ?? 0));
    // A ping may be in transit.
    await manager.caughtUp();
    const before = manager.withLine('WATCHDOG=1').length;
    // The absence of a ping needs time to show: three pings would have been due.
    await setTimeout(1.5 * watchdogMs);
    await manager.caughtUp();
    assert.equal(manager.withLine('WATCHDOG=1').length, before);
    agent.child.kill('SIGCONT');
    await until(() => manager.withLine('WATCHDOG=1').length > before);
  });

  it('reports why it does not start', async () => {
    using host = copyHost(installed);
    host.configure({ bundles: [] });
    await using manager = await listenForNotices(host.dir.join('notify'));
    await using agent = startAgent(host, manager);
    assert.equal((await agent.ended).exitCode, 2);
    await until(() => manager.datagrams.some(({ lines }) => lines[0]?.startsWith('STATUS=CONFIG_INVALID')));
    assert.deepEqual(stateChanges(manager), []);
  });
});

/** The process is stopped, and its children that send datagrams have ended. */
function isStopped(pid: number): boolean {
  const stateOf = (one: number | string): string | undefined =>
    /^State:\t(.)/m.exec(readFileSync(`/proc/${one}/status`, 'utf8'))?.[1];
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return stateOf(pid) === 'T' && children.split(' ').every((child) => child === '' || stateOf(child) === 'Z');
}

describe('a server under a service manager', { ...real, ...longCase }, () => {
  it('is ready when it listens, and reports reloads and its end', async () => {
    using host = await installHost();
    await using manager = await listenForNotices(host.dir.join('notify'));
    const args = ['serve', '--repository', host.repository, '--listen', '127.0.0.1:0'];
    await using server = startWrit(args, { NOTIFY_SOCKET: manager.socket, WATCHDOG_USEC: '400000' });
    const [url] = await server.waitForStdout(/http:\/\/127\.0\.0\.1:\d+/);
    await manager.has(`STATUS=listening on ${url}`);
    server.child.kill('SIGHUP');
    await until(() => stateChanges(manager).length === 3);
    await until(() => manager.withLine('WATCHDOG=1').length >= 2);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).exitCode, 0);
    await until(() => stateChanges(manager).length === 4);
    assert.deepEqual(stateChanges(manager), ['READY=1', 'RELOADING=1', 'READY=1', 'STOPPING=1']);
  });
});
