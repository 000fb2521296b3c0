// The units that Writ ships: each promise is compared with their text, and verified by systemd if it is installed.
import assert from 'node:assert/strict';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { DoctorFinding } from '../../src/core/status/doctor.js';
import { type CommandResult, runCommand } from '../../src/platform/process/run-command.js';
import { installHost } from '../kit/agent/installed-host.js';
import { jsonOf, runWrit, type WritRun } from '../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../kit/disk/temp-dir.js';
import { needs } from '../kit/programs/real-programs.js';
import { projectRoot } from '../kit/sources/source-files.js';
import { readUnitFile } from './unit-file.js';

const folder = join(projectRoot, 'packaging', 'systemd');
const units = readdirSync(folder).filter((name) => /\.(?:service|target)$/.test(name));
const unit = (name: string) => readUnitFile(join(folder, name));
const agent = unit('writ-agent.service');
const server = unit('writ-server.service');
const fleet = unit('writ-fleet.service');

describe('the unit of the agent', () => {
  it('is ready at its notification by a helper process, without a start timeout', () => {
    assert.equal(agent.value('Service', 'Type'), 'notify');
    assert.equal(agent.value('Service', 'NotifyAccess'), 'all');
    assert.equal(agent.value('Service', 'TimeoutStartSec'), 'infinity');
    assert.ok(agent.value('Service', 'WatchdogSec'));
  });

  it('does not wait for a network or for names, because it may start the resolver', () => {
    const order = [
      ...agent.all('Unit', 'After'),
      ...agent.all('Unit', 'Wants'),
      ...agent.all('Unit', 'Requires'),
    ];
    assert.deepEqual(
      order.filter((name) => /network|nss-lookup/.test(name)),
      [],
    );
  });

  it('reloads by a command that waits for the outcome, and not by a signal without an answer', () => {
    const [reload, ...more] = agent.all('Service', 'ExecReload');
    assert.match(reload ?? '', /^\/usr\/bin\/writ reload /);
    assert.deepEqual(more, []);
  });

  it('restarts after every end except that of a configuration with a mistake', () => {
    assert.equal(agent.value('Service', 'Restart'), 'always');
    assert.equal(agent.value('Service', 'RestartPreventExitStatus'), '2');
    assert.equal(agent.value('Unit', 'StartLimitIntervalSec'), '0');
  });

  it('is not ended by a check that exhausts the memory, or in the middle of a swap', () => {
    assert.equal(agent.value('Service', 'OOMPolicy'), 'continue');
    assert.equal(agent.value('Service', 'KillMode'), 'mixed');
    assert.equal(
      agent.value('Service', 'Delegate'),
      'memory pids',
      'control groups below its own bound its commands',
    );
  });

  it('has no hardening that prevents bubblewrap or the notification of workers', () => {
    const forbidden =
      /^(?:RestrictNamespaces|SystemCallFilter|ProtectKernelTunables|ProtectKernelLogs|ProtectControlGroups|ProtectProc|ProcSubset|PrivateTmp|PrivateUsers|PrivatePIDs|PrivateNetwork|PrivateDevices|MemoryDenyWriteExecute|DynamicUser)$/;
    assert.deepEqual(
      agent.keys('Service').filter((key) => forbidden.test(key)),
      [],
    );
    assert.ok(agent.value('Service', 'RestrictAddressFamilies')?.includes('AF_NETLINK'));
    // The unit names each of them with the reason why it is absent.
    const text = readFileSync(join(folder, 'writ-agent.service'), 'utf8');
    for (const key of ['RestrictNamespaces', 'SystemCallFilter', 'ProtectKernelTunables', 'PrivateTmp'])
      assert.ok(text.includes(`${key}=`), key);
  });

  it('keeps the capabilities that the sandbox, signals and other users need', () => {
    const dropped = agent.all('Service', 'CapabilityBoundingSet').join(' ');
    assert.match(dropped, /^~/);
    for (const name of [
      'SYS_ADMIN',
      'SETUID',
      'SETGID',
      'SETPCAP',
      'NET_ADMIN',
      'SYS_CHROOT',
      'KILL',
      'CHOWN',
    ])
      assert.equal(new RegExp(`\\bCAP_${name}\\b`).test(dropped), false, name);
    for (const name of ['DAC_OVERRIDE', 'DAC_READ_SEARCH', 'FOWNER', 'SYS_PTRACE', 'SYS_RESOURCE'])
      assert.equal(new RegExp(`\\bCAP_${name}\\b`).test(dropped), false, name);
  });

  it('has the directories of the default configuration, with their modes', () => {
    assert.equal(agent.value('Service', 'StateDirectory'), 'writ');
    assert.equal(agent.value('Service', 'StateDirectoryMode'), '0711');
    assert.equal(agent.value('Service', 'RuntimeDirectory'), 'writ');
    assert.equal(agent.value('Service', 'RuntimeDirectoryPreserve'), 'yes');
  });
});

describe('the target of the policy', () => {
  const ready = unit('writ-policy-ready.service');
  const target = unit('writ-policy.target');

  it('is reached after the agent, however often the agent had to start', () => {
    assert.equal(target.value('Unit', 'Requires'), 'writ-policy-ready.service');
    assert.equal(target.value('Unit', 'After'), 'writ-policy-ready.service');
    assert.equal(ready.value('Unit', 'After'), 'writ-agent.service');
    assert.equal(ready.value('Service', 'TimeoutStartSec'), 'infinity');
    assert.match(
      ready.value('Service', 'ExecStart') ?? '',
      /until systemctl is-active --quiet writ-agent\.service/,
    );
  });

  it('stays reached when the agent stops or restarts, because workers that require it must not stop', () => {
    for (const one of [target, ready]) {
      for (const key of ['Requires', 'BindsTo', 'PartOf', 'Requisite', 'PropagatesStopTo'])
        assert.equal(one.all('Unit', key).join(' ').includes('writ-agent'), false, key);
    }
    assert.equal(ready.value('Service', 'RemainAfterExit'), 'yes');
  });
});

describe('the unit of the server', () => {
  it('runs as a user of its own, which can write only to its repository', () => {
    assert.equal(server.value('Service', 'User'), 'writ');
    assert.equal(server.value('Service', 'ProtectSystem'), 'strict');
    assert.deepEqual(server.all('Service', 'ReadWritePaths'), ['/srv/writ/repo']);
    assert.equal(server.value('Service', 'CapabilityBoundingSet'), 'CAP_NET_BIND_SERVICE');
  });

  it('has a user and a directory made for it', () => {
    const users = readFileSync(join(folder, 'writ-server.sysusers.conf'), 'utf8');
    assert.match(users, /^u\s+writ\s/m);
    const places = readFileSync(join(folder, 'writ-server.tmpfiles.conf'), 'utf8');
    assert.match(places, /^d\s+\/srv\/writ\/repo\s+0755\s+writ\s/m);
    const ofHosts = readFileSync(join(folder, 'writ.tmpfiles.conf'), 'utf8');
    assert.match(ofHosts, /^d\s+\/var\/lib\/writ\s+0711\s+root\s/m);
  });
});

describe('the unit of the fleet server', () => {
  it('runs as a user of its own, with the hardening of the other server and a private store', () => {
    assert.equal(fleet.value('Service', 'User'), 'writ-fleet');
    assert.equal(fleet.value('Service', 'StateDirectoryMode'), '0700');
    assert.equal(fleet.value('Service', 'UMask'), '0077');
    const own = [
      'Environment',
      'EnvironmentFile',
      'ExecStart',
      'User',
      'Group',
      'StateDirectory',
      'StateDirectoryMode',
      'UMask',
    ];
    for (const key of server.keys('Service').filter((one) => one !== 'ReadWritePaths' && !own.includes(one)))
      assert.deepEqual(fleet.all('Service', key), server.all('Service', key), key);
  });
});

describe('commands in units', () => {
  it('exist, with their flags', async () => {
    for (const one of [agent, server, fleet]) {
      for (const key of ['ExecStart', 'ExecReload']) {
        for (const line of one.all('Service', key).filter((text) => text.startsWith('/usr/bin/writ '))) {
          const [, ...args] = line.split(' ');
          const flags = args.filter((arg) => arg.startsWith('--'));
          const names = args.slice(0, args.indexOf(flags[0] ?? ''));
          const help = await runWrit([...names, '--help']);
          for (const flag of flags) assert.ok(help.stdout.includes(flag), `${line}: ${flag}`);
        }
      }
    }
  });
});

/** Copies the units with other programs, so that systemd finds each one although Writ is not installed. */
function copyUnits(dir: TempDir): string[] {
  return units.map((name) => {
    const path = dir.join(name);
    copyFileSync(join(folder, name), path);
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.replaceAll('/usr/bin/writ ', '/bin/true '));
    return path;
  });
}

function analyze(dir: TempDir, args: readonly string[]): Promise<CommandResult> {
  const env = { SYSTEMD_UNIT_PATH: `${dir.path}:` };
  return runCommand({ argv: ['systemd-analyze', ...args], env, timeoutMs: 60_000, maxOutputBytes: 65_536 });
}

describe('systemd', needs('systemd-analyze', 'systemd'), () => {
  it('reports no finding about any unit', async () => {
    using dir = tempDir();
    const result = await analyze(dir, ['verify', '--man=no', ...copyUnits(dir)]);
    assert.equal(result.kind, 'exited');
    // It exits with 0 for an unknown key: only its output shows the finding.
    assert.deepEqual('stderr' in result && [result.exitCode, result.stdout, result.stderr], [0, '', '']);
  });

  it('prints an unknown key', async () => {
    using dir = tempDir();
    copyUnits(dir);
    const path = dir.join('writ-agent.service');
    writeFileSync(path, readFileSync(path, 'utf8').replace('WatchdogSec', 'WatchDogSec'));
    const result = await analyze(dir, ['verify', '--man=no', path]);
    assert.match('stderr' in result ? result.stderr : '', /WatchDogSec/);
  });

  it('rates the exposure of the server below the threshold', async () => {
    using dir = tempDir();
    copyUnits(dir);
    const args = [
      'security',
      '--offline=true',
      '--threshold=25',
      '--no-pager',
      dir.join('writ-server.service'),
    ];
    const result = await analyze(dir, args);
    assert.equal(result.kind === 'exited' ? result.exitCode : result.kind, 0);
  });
});

const asRoot = process.getuid?.() === 0 ? {} : { skip: 'only root can drop capabilities as systemd does' };

describe('the sandbox under the hardening of the agent', {
  ...needs('bwrap', 'bubblewrap'),
  ...asRoot,
}, () => {
  it('starts with the remaining capabilities, and without new privileges', async () => {
    const dropped = agent
      .all('Service', 'CapabilityBoundingSet')
      .flatMap((line) => line.replace(/^~/, '').split(' '))
      .map((name) => `-${name.replace(/^CAP_/, '').toLowerCase()}`);
    using host = await installHost();
    host.configure({ sandbox: 'required' });
    const hardened = ['setpriv', '--no-new-privs', `--bounding-set=${dropped.join(',')}`];
    const [plain, run] = [
      await host.writ('doctor', '--json'),
      await host.writUnder(hardened, 'doctor', '--json'),
    ];
    const sandboxIn = (one: WritRun): DoctorFinding | undefined =>
      (jsonOf(one)['findings'] as DoctorFinding[]).find(({ check }) => check === 'sandbox');
    assert.match(sandboxIn(run)?.text ?? '', /^a test command was confined as nobody/, run.stdout);
    assert.deepEqual(sandboxIn(run), sandboxIn(plain));
  });
});
