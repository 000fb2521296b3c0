// A stub of the kernel tree: directories and plain files. These cases check the written files and that no other group is
// changed. test/exhaustive/systemd/systemd-control-groups.test.ts checks the effect in the kernel.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { findControlGroups } from '../../../../src/platform/process/control-group.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

interface Tree {
  readonly membership: string;
  readonly root: string;
  /** Directory of the unit. */
  readonly unit: string;
}

interface TreeOptions {
  readonly path?: string;
  readonly controllers?: string;
  readonly pids?: readonly number[];
}

function tree(dir: TempDir, options: TreeOptions = {}): Tree {
  const { path = '/system.slice/writ-agent.service', controllers = 'cpu memory pids' } = options;
  const unit = dir.join(path.replace(/\/agent$/, ''));
  fs.mkdirSync(dir.join(path), { recursive: true });
  fs.writeFileSync(dir.join('membership'), `0::${path}\n`);
  fs.writeFileSync(join(unit, 'cgroup.controllers'), `${controllers}\n`);
  fs.writeFileSync(
    join(unit, 'cgroup.procs'),
    (options.pids ?? [process.pid]).map((pid) => `${pid}\n`).join(''),
  );
  return { membership: dir.join('membership'), root: dir.path, unit };
}

const yes = async (): Promise<boolean> => true;
const bounds = { maxMemoryBytes: 5_000_000, maxProcesses: 10 };

describe('control groups of commands', () => {
  it('are below the unit, beside the group into which the agent moved', async () => {
    using dir = tempDir();
    const { unit, ...places } = tree(dir);
    const asked: string[] = [];
    const isDelegated = async (name: string): Promise<boolean> => asked.push(name) === 1;
    const groups = await findControlGroups({ ...places, isDelegated });
    assert.deepEqual(asked, ['writ-agent.service']);
    assert.equal(fs.readFileSync(join(unit, 'agent/cgroup.procs'), 'utf8'), String(process.pid));
    assert.equal(fs.readFileSync(join(unit, 'cgroup.subtree_control'), 'utf8'), '+memory +pids');
    const group = groups?.open(bounds) ?? assert.fail();
    const [name = ''] = fs.readdirSync(unit).filter((one) => one.startsWith('hook-'));
    const content = (file: string): string => fs.readFileSync(join(unit, name, file), 'utf8');
    assert.deepEqual([content('memory.max'), content('memory.oom.group')], ['5000000', '1']);
    assert.equal(content('pids.max'), '18');
    const [program = '', ...args] = group.enter;
    const pid = execFileSync(program, [...args, 'sh', '-c', 'echo $$'], { encoding: 'utf8' });
    assert.equal(content('cgroup.procs'), pid);
    assert.deepEqual(await group.close(), { outOfMemory: 'no' });
    assert.equal(content('cgroup.kill'), '1');
  });

  it('report that their memory limit has killed a process', async () => {
    using dir = tempDir();
    const { unit, ...places } = tree(dir);
    const groups = await findControlGroups({ ...places, isDelegated: yes });
    const group = groups?.open(bounds) ?? assert.fail();
    const [name = ''] = fs.readdirSync(unit).filter((one) => one.startsWith('hook-'));
    fs.writeFileSync(join(unit, name, 'memory.events'), 'low 0\noom 1\noom_kill 2\n');
    assert.deepEqual(await group.close(), { outOfMemory: 'yes' });
  });

  it('are found again by an agent who has moved before', async () => {
    using dir = tempDir();
    const { unit, ...places } = tree(dir, { path: '/system.slice/writ-agent.service/agent', pids: [] });
    assert.ok(await findControlGroups({ ...places, isDelegated: yes }));
    assert.equal(fs.existsSync(join(unit, 'agent/agent')), false);
  });

  const without: Readonly<Record<string, TreeOptions>> = {
    'in a session of a person': { path: '/user.slice/session-3.scope' },
    'in a slice': { path: '/system.slice' },
    'without the controllers': { controllers: 'cpu pids' },
    'beside another process': { pids: [process.pid, 1] },
  };
  for (const [name, options] of Object.entries(without)) {
    it(`are not made ${name}, and nothing is touched`, async () => {
      using dir = tempDir();
      const { unit, ...places } = tree(dir, options);
      const before = fs.readdirSync(unit);
      assert.equal(await findControlGroups({ ...places, isDelegated: yes }), undefined);
      assert.deepEqual(fs.readdirSync(unit), before);
    });
  }

  it('are not made in a unit that systemd has not delegated', async () => {
    using dir = tempDir();
    const { unit, ...places } = tree(dir);
    assert.equal(await findControlGroups({ ...places, isDelegated: async () => false }), undefined);
    assert.equal(fs.existsSync(join(unit, 'agent')), false);
  });

  it('are not made under the first version', async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('membership'), '4:memory:/a.service\n1:name=systemd:/a.service\n');
    const places = { membership: dir.join('membership'), root: dir.path, isDelegated: yes };
    assert.equal(await findControlGroups(places), undefined);
    assert.equal(await findControlGroups({ ...places, membership: dir.join('absent') }), undefined);
  });

  it('leave a command to its other bounds when one cannot be made', async () => {
    using dir = tempDir();
    const { unit, ...places } = tree(dir);
    const groups = await findControlGroups({ ...places, isDelegated: yes });
    fs.rmSync(unit, { recursive: true });
    assert.equal(groups?.open(bounds), undefined);
  });
});
