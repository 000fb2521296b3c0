// `writ doctor` on real directories, servers and processes: its findings, and that it changes nothing.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readOfflineStatus } from '../../../../src/agent/control/offline-status.js';
import { runDoctor } from '../../../../src/agent/doctor/doctor.js';
import { toWritError } from '../../../../src/core/errors.js';
import { chooseServiceCommands } from '../../../../src/core/status/agent-service.js';
import type { DoctorCheck, DoctorFinding } from '../../../../src/core/status/doctor.js';
import { judgeHostHealth } from '../../../../src/core/status/host-health.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { startServer } from '../../../../src/server/server.js';
import { copyHost, type InstalledHost, installHost } from '../../../kit/agent/installed-host.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { leaveStaleSocket } from '../../../kit/disk/stale-socket.js';
import { makeCertificate } from '../../../kit/net/certificate.js';
import { startFakeSupervisord, xmlArray, xmlProcess } from '../../../kit/workers/fake-supervisord.js';

let installed: InstalledHost;

/** With a resolv.conf and hosts of its own. */
async function examine(
  host: InstalledHost,
  { aheadMs = 0, releasedAtMs }: { readonly aheadMs?: number; readonly releasedAtMs?: number } = {},
): Promise<DoctorFinding[]> {
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
  const common = { configPath: host.config, version: '0.1.0' };
  const service = chooseServiceCommands('absent');
  const hostStatus = await readOfflineStatus({ ...common, clock }).then(
    (report) => ({ kind: 'disk', report }) as const,
    (error: unknown) => ({ kind: 'failed', why: toWritError(error) }) as const,
  );
  return runDoctor({ ...common, clock, releasedAtMs, hostStatus, service, etc: host.dir.join('etc') });
}

function etcOf(host: InstalledHost, files: Readonly<Record<string, string>>): void {
  mkdirSync(host.dir.join('etc'), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(host.dir.join('etc', name), text);
}

const of = (findings: readonly DoctorFinding[], check: DoctorCheck): string[] =>
  findings.filter((one) => one.check === check).map(({ state, text }) => `${state} ${text}`);

/** Without the time of the directory in which doctor tests a rename on overlayfs. */
function stateOf(host: InstalledHost): object {
  const { 'state/staging': _, ...rest } = directoryState(host.dir.path) as Record<string, unknown>;
  return rest;
}

const group = (reset: object) => ({ name: 'ns', uses: ['dns-edge'], reset });

describe('writ doctor', () => {
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  it('reports a healthy host as ok, and changes nothing on it', async () => {
    using host = copyHost(installed);
    const stands = stateOf(host);
    const findings = await examine(host);
    assert.deepEqual(stateOf(host), stands);
    const bad = findings.filter(({ state }) => state === 'FAIL' || state === 'warn');
    assert.deepEqual(
      bad.map(({ check }) => check),
      ['agent'],
      'no agent runs here',
    );
    assert.match(of(findings, 'state')[0] ?? '', /^ok .*flushing works, .* free$/);
    assert.match(of(findings, 'server')[0] ?? '', /^ok file:.*: 200 in \d+ ms$/);
    assert.match(of(findings, 'trust')[0] ?? '', /^ok timestamp v2 \d d/);
  });

  it('continues without a readable configuration', async () => {
    using host = copyHost(installed);
    host.configure({ bundles: [], scrub: { every: 'often' } });
    const findings = await examine(host);
    const [first] = findings;
    assert.deepEqual([first?.check, first?.state, first?.code], ['configuration', 'FAIL', 'CONFIG_INVALID']);
    assert.match(of(findings, 'state')[0] ?? '', /^ok /);
    assert.match(of(findings, 'server')[0] ?? '', /^skip /);
    writeFileSync(host.config, '{');
    assert.equal((await examine(host))[0]?.code, 'CONFIG_SYNTAX');
  });

  it('fails if other users can change the state directory', async () => {
    using host = copyHost(installed);
    chmodSync(host.paths.state, 0o777);
    const found = (await examine(host)).find(({ check }) => check === 'state');
    assert.deepEqual([found?.state, found?.code], ['FAIL', 'PATH_UNSAFE']);
  });

  it('compares the clock with the Date of the server', longCase, async () => {
    using host = copyHost(installed);
    const server = await startServer({ repository: host.repository, host: '127.0.0.1', port: 0 });
    try {
      host.configure({ repository: server.url });
      const well = await examine(host);
      assert.match(of(well, 'server')[0] ?? '', /^ok http:.*: 200 in \d+ ms$/);
      assert.deepEqual(of(well, 'clock'), ['ok that of the server']);
      assert.match(
        of(await examine(host, { aheadMs: 60_000 }), 'clock')[0] ?? '',
        /^warn (59|60|61).* s ahead of the server/,
      );
      assert.match(of(await examine(host, { aheadMs: 3_600_000 }), 'clock')[0] ?? '', /^FAIL 60 min ahead/);
    } finally {
      await server.close();
    }
  });

  it('compares the clock with the release date of the program', async () => {
    using host = copyHost(installed);
    const nowMs = systemClock.nowMs();
    const dayMs = 86_400_000;
    const early = await examine(host, { releasedAtMs: nowMs + 3 * dayMs });
    assert.match(of(early, 'clock')[0] ?? '', /^FAIL it is .* before the release of this version on /);
    assert.match(of(await examine(host, { releasedAtMs: nowMs }), 'clock')[0] ?? '', /^ok /);
  });

  it('adds the Age of a cached answer to the Date of its server', async () => {
    using host = copyHost(installed);
    const hourMs = 3_600_000;
    const cache = createHttpServer((_, response) => {
      const date = new Date(systemClock.nowMs() - hourMs).toUTCString();
      response.writeHead(200, { date, age: '3600' }).end();
    });
    await new Promise<void>((resolve) => cache.listen(0, '127.0.0.1', resolve));
    try {
      host.configure({ repository: `http://127.0.0.1:${(cache.address() as AddressInfo).port}/` });
      assert.deepEqual(of(await examine(host), 'clock'), ['ok that of the server']);
    } finally {
      cache.close();
    }
  });

  it('reports the days of a certificate, and a server that is not trusted', longCase, async () => {
    using host = copyHost(installed);
    const tls = await makeCertificate(host.dir.path, 'server');
    const server = await startServer({ repository: host.repository, host: '127.0.0.1', port: 0, tls });
    try {
      host.configure({ repository: { url: server.url, ca: tls.certFile } });
      const text = of(await examine(host), 'server')[0] ?? '';
      assert.match(text, /^warn https:.*: 200 in \d+ ms, certificate 48 h left$/);
      host.configure({ repository: server.url });
      assert.match(of(await examine(host), 'server')[0] ?? '', /^FAIL /);
    } finally {
      await server.close();
    }
  });

  it('warns if one mirror cannot be reached, and fails if none can', async () => {
    using host = copyHost(installed);
    host.configure({ repository: ['http://127.0.0.1:9/', `file://${host.repository}`] });
    const both = of(await examine(host), 'server').map((one) => one.slice(0, 4));
    assert.deepEqual(both, ['warn', 'ok f']);
    host.configure({ repository: 'http://127.0.0.1:9/' });
    const found = (await examine(host)).find(({ check }) => check === 'server');
    assert.deepEqual([found?.state, found?.code], ['FAIL', 'SERVER_UNREACHABLE']);
  });

  it('reports the members of a group, and whether their user can read policy', async () => {
    using host = copyHost(installed);
    const pidFile = host.dir.join('ns.pid');
    host.configure({ workers: [group({ signal: 'HUP', pidFile, min: 1 })] });
    const absent = await examine(host);
    assert.match(of(absent, 'workers')[0] ?? '', /^FAIL ns has no worker now/);
    assert.match(of(absent, 'permissions')[0] ?? '', /^skip /);
    writeFileSync(pidFile, `${process.pid}\n`);
    const there = await examine(host);
    assert.match(of(there, 'workers')[0] ?? '', /^(ok|warn) ns: 1/);
    assert.match(of(there, 'permissions')[0] ?? '', new RegExp(`^ok .* uid ${process.geteuid?.()}$`));
  });

  it('reports a lost ledger as status and health do, and no missing worker because of it', async () => {
    using host = copyHost(installed);
    const pidFile = host.dir.join('ns.pid');
    writeFileSync(pidFile, `${process.pid}\n`);
    host.configure({ workers: [group({ signal: 'HUP', pidFile, min: 1 })] });
    rmSync(join(host.paths.state, 'ledger.json'));
    const stands = stateOf(host);
    const report = await readOfflineStatus({
      configPath: host.config,
      version: '0.1.0',
      clock: systemClock,
    });
    const { level, findings } = judgeHostHealth(report);
    const codes = findings.map(({ code }) => code);
    assert.deepEqual([level, codes.includes('STATE_DAMAGED')], ['critical', true]);
    assert.ok(report.problems.some((one) => one.code === 'STATE_DAMAGED' && /is gone/.test(one.message)));
    for (const all of [codes, report.problems.map(({ code }) => code)])
      assert.ok(!all.includes('WORKERS_MISSING'), all.join());
    const seen = await examine(host);
    assert.match(of(seen, 'workers')[0] ?? '', /^ok ns: 1/);
    assert.ok(seen.some(({ code }) => code === 'STATE_DAMAGED'));
    assert.deepEqual(stateOf(host), stands);
  });

  it('finds the user of a worker of supervisord, also if each notification starts a new process', async () => {
    using host = copyHost(installed);
    const one = { group: 'web', name: 'a', state: 20, stateName: 'RUNNING', pid: process.pid };
    const fake = await startFakeSupervisord(host.dir.join('s'), (method) =>
      method === 'getProcessInfo' ? xmlProcess(one) : xmlArray([xmlProcess(one)]),
    );
    try {
      host.configure({ workers: [group({ supervisord: host.dir.join('s'), group: 'web' })] });
      assert.match(
        of(await examine(host), 'permissions')[0] ?? '',
        new RegExp(`^ok .* uid ${process.geteuid?.()}$`),
      );
    } finally {
      await fake.close();
    }
  });

  const asOwner = process.getuid?.() === 0 ? {} : { skip: 'only root can give a socket away' };
  it('takes the owner of a socket for its user, except root', asOwner, async () => {
    using host = copyHost(installed);
    mkdirSync(host.dir.join('control'));
    const kresd = {
      kresd: host.dir.join('control', '*'),
      command: 'policy_reset()',
      expect: '0',
      confirms: true,
    };
    host.configure({ workers: [group(kresd)] });
    const server = createServer().listen(host.dir.join('control', '1'));
    await once(server, 'listening');
    try {
      // A process that binds a socket as root may have changed its user since, and the inode of the socket names no process.
      assert.match(
        of(await examine(host), 'permissions')[0] ?? '',
        /^skip .*: the users of the workers are unknown$/,
      );
      chownSync(host.dir.join('control', '1'), 65_534, 65_534);
      assert.match(of(await examine(host), 'permissions')[0] ?? '', /^(ok|FAIL) .*uid 65534/);
    } finally {
      server.close();
    }
  });

  it('reports workers even if the policy cannot be read', async () => {
    using host = copyHost(installed);
    host.configure({ workers: [group({ signal: 'HUP', pidFile: host.dir.join('ns.pid') })] });
    const bundle = join(host.paths.policy, 'current', 'dns-edge');
    const tree = realpathSync(bundle);
    rmSync(tree, { recursive: true });
    writeFileSync(tree, 'no directory');
    const findings = await examine(host);
    assert.match(of(findings, 'workers')[0] ?? '', /^FAIL ns has no worker now/);
    assert.match(of(findings, 'permissions')[0] ?? '', /^warn could not be checked/);
  });

  it('detects the control socket of a dead agent', async () => {
    using host = copyHost(installed);
    mkdirSync(host.dir.join('control'));
    const kresd = {
      kresd: host.dir.join('control', '*'),
      command: 'policy_reset()',
      expect: '0',
      confirms: true,
    };
    host.configure({ workers: [group(kresd)] });
    await leaveStaleSocket(host.dir.join('control', '1'));
    assert.match(of(await examine(host), 'workers')[0] ?? '', /^FAIL ns: 1 of 1 dead: 1$/);
    const server = createServer().listen(host.dir.join('control', '2'));
    await once(server, 'listening');
    try {
      assert.match(of(await examine(host), 'workers')[0] ?? '', /^warn ns: 1 of 2 dead: 1$/);
    } finally {
      server.close();
    }
  });

  it('warns of a name that only a worker can resolve', async () => {
    using host = copyHost(installed);
    const kresd = { kresd: '/nowhere/control/*', command: 'policy_reset()', expect: '0', confirms: true };
    host.configure({ repository: 'http://policy.invalid/', workers: [group(kresd)] });
    etcOf(host, { 'resolv.conf': '# ours\nnameserver 127.0.0.1\n', hosts: '127.0.0.1 localhost\n' });
    assert.match(
      of(await examine(host), 'names')[0] ?? '',
      /^warn only 127\.0\.0\.1 resolves policy\.invalid, and ns answers there/,
    );
    etcOf(host, { hosts: '192.0.2.7 policy.invalid  # by hand\n' });
    assert.match(of(await examine(host), 'names')[0] ?? '', /^ok /);
    etcOf(host, { hosts: '', 'resolv.conf': 'nameserver 127.0.0.1\nnameserver 192.0.2.1\n' });
    assert.match(of(await examine(host), 'names')[0] ?? '', /^ok /);
  });

  const asRoot = process.getuid?.() === 0 ? {} : { skip: 'only root can open port 53' };
  it('treats a worker that listens on port 53 as a resolver', asRoot, async () => {
    using host = copyHost(installed);
    const socket = createSocket('udp4').bind(53, '127.53.53.53');
    await once(socket, 'listening');
    try {
      writeFileSync(host.dir.join('ns.pid'), `${process.pid}\n`);
      host.configure({
        repository: 'http://policy.invalid/',
        workers: [group({ signal: 'HUP', pidFile: host.dir.join('ns.pid') })],
      });
      etcOf(host, { 'resolv.conf': 'nameserver 127.53.53.53\n' });
      assert.match(of(await examine(host), 'names')[0] ?? '', /^warn /);
    } finally {
      socket.close();
    }
  });
});
