import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { prepareHost } from '../../../../src/agent/startup/prepare-host.js';
import { hostPaths } from '../../../../src/agent/state/paths.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { requireSafePath } from '../../../../src/platform/disk/safe-path.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { runNodeScript } from '../../../kit/cli/child-script.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

const isRoot = process.getuid?.() === 0;
const unprivilegedUid = 65_534;
const modeOf = (path: string): string => (fs.statSync(path).mode & 0o7777).toString(8);

function pathsIn(dir: TempDir, policy = dir.join('var/writ/policy')): ReturnType<typeof hostPaths> {
  const run = dir.join('run/writ');
  return hostPaths({ state: dir.join('var/writ'), policy, run, socket: join(run, 'agent.sock') });
}

describe('the directories of a host', () => {
  it('are created with exact modes under any umask', longCase, async () => {
    using dir = tempDir();
    const paths = pathsIn(dir);
    const result = await runNodeScript(`
      process.umask(0o077);
      const { prepareHost } = await import(at('src/agent/startup/prepare-host.js'));
      const { createDurableFs } = await import(at('src/platform/disk/durable-fs.js'));
      prepareHost(${JSON.stringify(paths)}, createDurableFs());
    `);
    assert.equal(result.kind === 'exited' && result.exitCode, 0, JSON.stringify(result));
    const modes = Object.fromEntries(
      (
        [
          'state',
          'trust',
          'staging',
          'partials',
          'archives',
          'policy',
          'generations',
          'bundles',
          'run',
        ] as const
      ).map((name) => [name, modeOf(paths[name])]),
    );
    assert.deepEqual(modes, {
      state: '711',
      trust: '700',
      staging: '700',
      partials: '700',
      archives: '700',
      policy: '755',
      generations: '755',
      bundles: '755',
      run: '755',
    });
    assert.equal(modeOf(dir.join('var')), '755', 'parents too, or no worker could come by');
  });

  it('are not changed when they exist', () => {
    using dir = tempDir();
    const paths = pathsIn(dir);
    prepareHost(paths, createDurableFs());
    fs.chmodSync(paths.policy, 0o750);
    prepareHost(paths, createDurableFs());
    assert.equal(modeOf(paths.policy), '750');
  });

  it('are refused when the policy is on another file system, because no rename can cross it', (t) => {
    using dir = tempDir();
    if (fs.statSync('/dev/shm').dev === fs.statSync(dir.path).dev) return t.skip('one file system');
    const other = fs.mkdtempSync('/dev/shm/writ-test-');
    try {
      const error = throwsCode('PATH_CROSS_DEVICE', () =>
        prepareHost(pathsIn(dir, other), createDurableFs()),
      );
      assert.equal(error.facts['policy'], join(other, 'generations'));
    } finally {
      fs.rmSync(other, { recursive: true });
    }
  });
});

describe('a path that other users can change', () => {
  it('is refused when all users or the group can write a directory in it', () => {
    for (const mode of [0o777, 0o775]) {
      using dir = tempDir();
      fs.mkdirSync(dir.join('var'));
      fs.chmodSync(dir.join('var'), mode);
      const error = throwsCode('PATH_UNSAFE', () => prepareHost(pathsIn(dir), createDurableFs()));
      assert.equal(error.facts['path'], dir.join('var'));
      assert.equal(error.facts['mode'], mode.toString(8));
    }
  });

  it('is refused when a worker owns a directory in it', { skip: isRoot ? false : 'only root can' }, () => {
    using dir = tempDir();
    const paths = pathsIn(dir);
    prepareHost(paths, createDurableFs());
    fs.chownSync(paths.policy, unprivilegedUid, unprivilegedUid);
    const error = throwsCode('PATH_UNSAFE', () => prepareHost(paths, createDurableFs()));
    assert.deepEqual([error.facts['path'], error.facts['uid']], [paths.policy, unprivilegedUid]);
    fs.chownSync(paths.policy, 0, 0);
  });

  it('is refused before any directory is created, when another user owns a link in it', {
    skip: isRoot ? false : 'only root can',
  }, () => {
    for (const name of ['state', 'policy', 'run'] as const) {
      using dir = tempDir();
      const paths = { ...pathsIn(dir), [name]: dir.join('link/writ') };
      fs.mkdirSync(dir.join('target'));
      fs.symlinkSync('target', dir.join('link'));
      fs.lchownSync(dir.join('link'), unprivilegedUid, unprivilegedUid);
      const error = throwsCode('PATH_UNSAFE', () => prepareHost(paths, createDurableFs()));
      assert.equal(error.facts['path'], dir.join('link'));
      assert.deepEqual(fs.readdirSync(dir.join('target')), []);
    }
  });

  it('is refused for the directories of reports, of roots, and of the archives of a bundle', () => {
    using dir = tempDir();
    const paths = pathsIn(dir);
    prepareHost(paths, createDurableFs());
    for (const path of [paths.fleet, join(paths.trust, 'roots'), join(paths.archives, 'access')]) {
      fs.mkdirSync(path, { mode: 0o700 });
      prepareHost(paths, createDurableFs());
      fs.chmodSync(path, 0o777);
      const error = throwsCode('PATH_UNSAFE', () => prepareHost(paths, createDurableFs()));
      assert.equal(error.facts['path'], path);
      fs.chmodSync(path, 0o700);
    }
  });

  it('is refused for each directory of Writ in which other users can create files, even with a sticky bit', () => {
    using dir = tempDir();
    const paths = pathsIn(dir);
    prepareHost(paths, createDurableFs());
    const bundle = join(paths.bundles, 'access');
    fs.mkdirSync(bundle, { mode: 0o755 });
    const { state, trust, staging, archives, policy, generations, bundles, run } = paths;
    for (const path of [state, trust, staging, archives, policy, generations, bundles, bundle, run]) {
      const mode = fs.statSync(path).mode;
      for (const wide of [0o777, 0o775, 0o1777]) {
        fs.chmodSync(path, wide);
        const error = throwsCode('PATH_UNSAFE', () => prepareHost(paths, createDurableFs()));
        assert.deepEqual([error.facts['path'], error.facts['mode']], [path, wide.toString(8)]);
      }
      fs.chmodSync(path, mode);
    }
    prepareHost(paths, createDurableFs());
  });

  it('is refused when a worker owns `run` or the directory of a control socket outside `run`', {
    skip: isRoot ? false : 'only root can',
  }, () => {
    using dir = tempDir();
    const paths = pathsIn(dir);
    prepareHost(paths, createDurableFs());
    fs.chownSync(paths.run, unprivilegedUid, unprivilegedUid);
    const elsewhere = { ...paths, socket: dir.join('a.sock') };
    const error = throwsCode('PATH_UNSAFE', () => prepareHost(elsewhere, createDurableFs()));
    assert.deepEqual([error.facts['path'], error.facts['uid']], [paths.run, unprivilegedUid]);
    fs.chownSync(paths.run, 0, 0);
    fs.mkdirSync(dir.join('else/where'), { recursive: true });
    fs.chownSync(dir.join('else'), unprivilegedUid, unprivilegedUid);
    for (const socket of ['else/where/a.sock', 'else/not/there/a.sock'])
      throwsCode('PATH_UNSAFE', () => prepareHost({ ...paths, socket: dir.join(socket) }, createDurableFs()));
  });

  it('is refused when a worker owns a link in it, because the worker can change the target', {
    skip: isRoot ? false : 'only root can',
  }, () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('real'));
    fs.symlinkSync(dir.join('real'), dir.join('var'));
    requireSafePath(dir.join('var'));
    fs.lchownSync(dir.join('var'), unprivilegedUid, unprivilegedUid);
    throwsCode('PATH_UNSAFE', () => requireSafePath(dir.join('var')));
  });

  it('is refused when a link in it leads through an unsafe directory', () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('open/real'), { recursive: true });
    fs.symlinkSync('open/real', dir.join('var'));
    requireSafePath(dir.join('var'));
    fs.chmodSync(dir.join('open'), 0o777);
    const error = throwsCode('PATH_UNSAFE', () => requireSafePath(dir.join('var')));
    assert.equal(error.facts['path'], dir.join('open'));
  });

  it('is accepted below a sticky directory of root, as /tmp is, and refused below one of a worker', {
    skip: isRoot ? false : 'only root can',
  }, () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('tmp/writ'), { recursive: true });
    fs.chmodSync(dir.join('tmp'), 0o1777);
    requireSafePath(dir.join('tmp/writ'));
    fs.chownSync(dir.join('tmp'), unprivilegedUid, unprivilegedUid);
    throwsCode('PATH_UNSAFE', () => requireSafePath(dir.join('tmp/writ')));
  });
});
