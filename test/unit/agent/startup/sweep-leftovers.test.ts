// A start removes all leftovers of a crash. They block no later cycle, and no used file is removed with them.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { syncCycle } from '../../../../src/agent/cycle/sync-cycle.js';
import { newCycleId } from '../../../../src/agent/job/progress.js';
import { closeHost } from '../../../../src/agent/startup/open-host.js';
import { sweepLeftovers } from '../../../../src/agent/startup/sweep-leftovers.js';
import type { Host } from '../../../../src/agent/state/host.js';
import { isTemporaryName } from '../../../../src/platform/disk/durable-fs.js';
import { publishNext } from '../../../kit/assert/fault-table.js';
import { needsMounts, runMounted } from '../../../kit/disk/mounted.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

async function hostWithPolicy(options: Parameters<typeof testHost>[0] = {}): Promise<TestHost> {
  const test = testHost(options);
  await publishNext(test, 5);
  assert.equal((await test.pull()).outcome, 'activated');
  return test;
}

/** The next pull, by a new process. */
async function pullOf(host: Host, force: 'yes' | 'no' = 'no'): Promise<string> {
  const signal = new AbortController().signal;
  const { result } = await syncCycle(host, { cycle: newCycleId(), trigger: 'pull', force, signal });
  await closeHost(host);
  return `${result.outcome} ${result.problems.map((one) => one.code).join()}`.trim();
}

const killed = { killed: true };

/** Simulates a kill at the first operation with this label: each later operation fails too. */
function dyingAt(label: string): { before: (operation: { readonly op: string }) => void; dead: boolean } {
  const self = {
    dead: false,
    before: ({ op }: { readonly op: string }) => {
      self.dead ||= op === label;
      if (self.dead) throw killed;
    },
  };
  return self;
}

describe('a start', () => {
  it('keeps a partial download, and removes other files of its directory', async () => {
    using test = await hostWithPolicy();
    const { partials } = test.host.paths;
    const path = join(partials, 'a'.repeat(64));
    fs.writeFileSync(path, 'x', { mode: 0o600 });
    const seconds = test.clock.nowMs() / 1000;
    fs.utimesSync(path, seconds, seconds);
    fs.writeFileSync(join(partials, '.writ-tmp-0123456789ab'), 'half');
    sweepLeftovers(test.host);
    assert.deepEqual(fs.readdirSync(partials), ['a'.repeat(64)]);
  });

  it('removes temporary files from each directory that Writ writes, and keeps files of other programs', async () => {
    using test = await hostWithPolicy();
    const { paths } = test.host;
    const written = [paths.state, paths.trust, join(paths.trust, 'roots'), paths.run];
    for (const directory of written) {
      fs.writeFileSync(join(directory, '.writ-tmp-0123456789ab'), 'half');
      fs.writeFileSync(join(directory, 'mine'), '');
    }
    for (const name of ['.current-c-7f20ab', '.current-c-other', '.current-mine'])
      fs.symlinkSync('x', join(paths.policy, name));
    fs.writeFileSync(join(paths.policy, '.current-c-file'), '');
    fs.mkdirSync(join(paths.staging, 'c-dead', 'deep'), { recursive: true });
    sweepLeftovers(test.host);
    for (const directory of written) {
      const names = fs.readdirSync(directory);
      assert.ok(!names.some(isTemporaryName) && names.includes('mine'), directory);
    }
    assert.deepEqual(fs.readdirSync(paths.policy).sort(), [
      '.current-c-file',
      '.current-mine',
      'bundles',
      'current',
      'generations',
    ]);
    assert.deepEqual(fs.readdirSync(paths.staging), []);
  });

  it('continues when a leftover cannot be removed, and the next cycle succeeds', async () => {
    using test = await hostWithPolicy();
    await publishNext(test, 6);
    fs.mkdirSync(join(test.host.paths.staging, 'c-dead'));
    const observer = {
      before: ({ op }: { readonly op: string }): void => {
        if (op.startsWith('recover.sweep')) throw Object.assign(new Error('EIO'), { code: 'EIO' });
      },
    };
    const host = test.reopen({ observer });
    sweepLeftovers(host);
    assert.equal(await pullOf(host), 'activated');
  });

  it('stops at a simulated kill', async () => {
    using test = await hostWithPolicy();
    fs.mkdirSync(join(test.host.paths.staging, 'c-dead'));
    const host = test.reopen({ observer: dyingAt('recover.sweep-staging') });
    assert.throws(
      () => sweepLeftovers(host),
      (error) => error === killed,
    );
  });
});

describe('trees that were placed before their generation', () => {
  const treesOf = (host: Host): string[] => fs.readdirSync(join(host.paths.bundles, 'access')).sort();

  for (const label of ['flush.record', 'flush.record-place:rename', 'flush.generation-place:rename']) {
    it(`are removed after a kill at ${label}`, async () => {
      using test = await hostWithPolicy();
      const used = treesOf(test.host);
      await publishNext(test, 6);
      await assert.rejects(pullOf(test.reopen({ observer: dyingAt(label) })), (error) => error === killed);
      assert.equal(treesOf(test.host).length, 2);
      const host = test.reopen();
      sweepLeftovers(host);
      assert.deepEqual(treesOf(host), used);
      assert.equal(await pullOf(host), 'activated');
      assert.equal(test.read('policy.yaml'.replace(/^/, 'access/')), 'version: 6\n');
    });

    it(`are removed by the cycle when the disk fails at ${label}`, async () => {
      using test = await hostWithPolicy();
      const used = treesOf(test.host);
      await publishNext(test, 6);
      const before = ({ op }: { readonly op: string }): void => {
        if (op === label) throw Object.assign(new Error('EIO'), { code: 'EIO' });
      };
      assert.equal(await pullOf(test.reopen({ observer: { before } })), 'failed DISK_FAILED');
      assert.deepEqual(treesOf(test.host), used);
    });
  }

  it('stay when the active generation cannot be read, because they may be in use', async () => {
    using test = await hostWithPolicy();
    const { paths } = test.host;
    fs.rmSync(join(paths.generations, '1'), { recursive: true });
    sweepLeftovers(test.host);
    assert.equal(treesOf(test.host).length, 1, 'the link names it');
    fs.unlinkSync(paths.current);
    fs.symlinkSync('elsewhere', paths.current);
    sweepLeftovers(test.host);
    assert.equal(treesOf(test.host).length, 1);
  });
});

describe('a retained release that is replaced by the same one', () => {
  const labels = [
    'flush.record-aside:rename',
    'flush.record-aside:flush-to',
    'flush.record-place:rename',
    'flush.record-place:flush-to',
    'flush.record-replaced:rename',
    'flush.record-replaced:flush-to',
  ];
  for (const label of labels) {
    it(`exists after a kill at ${label}, so the active tree keeps its manifest`, async () => {
      using test = await hostWithPolicy();
      const { paths } = test.host;
      const file = join(
        fs.readdirSync(paths.current).map((name) => join(paths.current, name))[0] ?? '',
        'policy.yaml',
      );
      // A repair fetches the same release again.
      fs.chmodSync(file, 0o600);
      fs.writeFileSync(file, 'damaged');
      await pullOf(test.reopen({ observer: dyingAt(label) }), 'yes');
      const host = test.reopen();
      sweepLeftovers(host);
      const kept = fs.readdirSync(join(paths.archives, 'access'));
      assert.deepEqual(
        kept.map((name) => name.replace(/-.*/, '')),
        ['5'],
      );
      assert.equal(
        fs.readdirSync(join(paths.archives, 'access', kept[0] ?? '')).includes('record.json'),
        true,
      );
      assert.equal(await pullOf(host, 'yes'), 'activated');
      assert.equal(test.read('access/policy.yaml'), 'version: 5\n');
      assert.equal(fs.readdirSync(join(paths.archives, 'access')).length, 1);
    });
  }

  it('is put back at once when the disk fails during the replacement', async () => {
    using test = await hostWithPolicy();
    const { paths } = test.host;
    const kept = fs.readdirSync(join(paths.archives, 'access'));
    fs.appendFileSync(join(paths.current, 'access', 'policy.yaml'), 'damaged');
    const before = ({ op }: { readonly op: string }): void => {
      if (op === 'flush.record-place:rename') throw Object.assign(new Error('EIO'), { code: 'EIO' });
    };
    assert.equal(await pullOf(test.reopen({ observer: { before } }), 'yes'), 'failed DISK_FAILED');
    assert.deepEqual(fs.readdirSync(join(paths.archives, 'access')), kept);
  });
});

describe('mounts inside the state directory', needsMounts(), () => {
  it('are never removed through, and are refused when a rename would cross them', async () => {
    using dir = tempDir();
    const state = JSON.stringify(dir.join('state'));
    fs.mkdirSync(dir.join('precious'));
    fs.writeFileSync(dir.join('precious', 'file'), 'stays');
    const { kind, ...result } = await runMounted(
      [
        `mkdir -p ${dir.path}/state/staging/c-dead/tree ${dir.path}/state/policy/bundles/access`,
        `chmod 700 ${dir.path}/state/staging`,
        `mount --bind ${dir.path}/precious ${dir.path}/state/staging/c-dead/tree`,
      ],
      `
      import { execFileSync } from 'node:child_process';
      const { createDurableFs } = await import(at('src/platform/disk/durable-fs.js'));
      const { prepareHost } = await import(at('src/agent/startup/prepare-host.js'));
      const { hostPaths } = await import(at('src/agent/state/paths.js'));
      const state = ${state};
      const durable = createDurableFs();
      const paths = hostPaths({ state, policy: state + '/policy', run: state + '/run', socket: state + '/s' });
      const codes = [];
      const note = (act) => { try { act(); codes.push('none'); } catch (error) { codes.push(error.code); } };
      note(() => prepareHost(paths, durable));
      note(() => durable.removeTree('t', state + '/staging/c-dead'));
      execFileSync('umount', [state + '/staging/c-dead/tree']);
      note(() => durable.removeTree('t', state + '/staging/c-dead'));
      for (const name of ['archives', 'policy/bundles/access', 'policy/generations', 'staging']) {
        execFileSync('mount', ['--bind', state + '/' + name, state + '/' + name]);
        note(() => prepareHost(paths, durable));
        execFileSync('umount', [state + '/' + name]);
      }
      note(() => prepareHost(paths, durable));
      console.log(JSON.stringify(codes));`,
    );
    assert.equal(kind, 'exited');
    assert.deepEqual(JSON.parse('stdout' in result ? result.stdout || `"${result.stderr}"` : '""'), [
      'none',
      'PATH_MOUNTED',
      'none',
      ...Array<string>(4).fill('PATH_CROSS_DEVICE'),
      'none',
    ]);
    assert.equal(fs.readFileSync(dir.join('precious', 'file'), 'utf8'), 'stays');
  });
});
