// The mark of a state directory on a real file system: the writes of a start, and the operations that the guard refuses.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { requireMovable } from '../../../../src/agent/activation/check-before-move.js';
import { hostPaths } from '../../../../src/agent/state/paths.js';
import { findVanished, openStateMark, withStateGuard } from '../../../../src/agent/state-mark/state-mark.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { Killed, operationTrap } from '../../../kit/disk/operation-trap.js';
import { memory, type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { testHost } from '../../../kit/host/test-host.js';

function placesIn(dir: TempDir) {
  const paths = hostPaths({
    ...{ state: dir.join('state'), policy: dir.join('policy'), run: dir.join('run') },
    socket: dir.join('run', 'agent.sock'),
  });
  for (const path of [paths.state, paths.policy, paths.run]) fs.mkdirSync(path);
  return paths;
}

function addPolicy({ ledger, bundles }: ReturnType<typeof placesIn>): void {
  fs.writeFileSync(ledger, '{}');
  fs.mkdirSync(`${bundles}/b/1-tree.1`, { recursive: true });
}

/** A directory with policy. Its mark was removed after this boot had read it. */
function markedWithPolicy(dir: TempDir): ReturnType<typeof placesIn> {
  const paths = placesIn(dir);
  addPolicy(paths);
  openStateMark(paths, createDurableFs(), 'boot-1');
  fs.rmSync(paths.stateMark);
  return paths;
}

/** @returns the operations that began. Asserts that the next process finds nothing vanished */
function crashAt(at: { readonly index: number; readonly when: 'before' | 'after' } | undefined): string[] {
  using dir = tempDir(memory());
  const paths = markedWithPolicy(dir);
  const trap = operationTrap();
  if (at !== undefined) trap.arm(at.index, at.when);
  const open = (): unknown => openStateMark(paths, createDurableFs(trap), 'boot-1');
  if (at === undefined) open();
  else assert.throws(open, Killed);
  assert.equal(findVanished(paths, 'boot-1')?.message, undefined, `${at?.when} ${trap.seen.at(-1)}`);
  return trap.seen;
}

describe('the mark of a state directory', () => {
  it('is copied to the run directory when there is a policy, for this boot', () => {
    using dir = tempDir();
    const paths = placesIn(dir);
    const mark = openStateMark(paths, createDurableFs(), 'boot-1');
    assert.ok(fs.existsSync(paths.stateMark));
    assert.equal(fs.existsSync(paths.knownMark), false);
    addPolicy(paths);
    assert.equal(mark.renew(), undefined);
    assert.equal(fs.statSync(paths.knownMark).mode & 0o777, 0o600);
    fs.rmSync(paths.state, { recursive: true });
    assert.equal(findVanished(paths, 'boot-1')?.facts['because'], 'absent');
    assert.equal(findVanished(paths, 'boot-2'), undefined);
  });

  it('is written again if it was removed beside a policy, and accepted by the next process', () => {
    using dir = tempDir();
    const paths = placesIn(dir);
    addPolicy(paths);
    const mark = openStateMark(paths, createDurableFs(), 'boot-1');
    fs.rmSync(paths.stateMark);
    assert.equal(mark.renew(), undefined);
    assert.equal(mark.findVanished(), undefined);
    assert.equal(findVanished(paths, 'boot-1'), undefined);
  });

  it('causes no alarm after a crash at any operation that writes it again beside a policy', () => {
    const labels = crashAt(undefined);
    assert.ok(
      labels.some((op) => op.startsWith('state-mark.write')),
      labels.join(),
    );
    assert.ok(
      labels.some((op) => op.startsWith('state-mark.copy')),
      labels.join(),
    );
    for (const index of labels.keys())
      for (const when of ['before', 'after'] as const) crashAt({ index, when });
  });

  it('causes no alarm if the run directory cannot hold a copy of the new mark', () => {
    using dir = tempDir();
    const paths = markedWithPolicy(dir);
    const before = ({ op }: { op: string }): void => {
      if (op.startsWith('state-mark.copy'))
        throw Object.assign(new Error('full'), { code: 'ENOSPC', errno: -28, syscall: 'open' });
    };
    openStateMark(paths, createDurableFs({ before }), 'boot-1');
    assert.equal(findVanished(paths, 'boot-1'), undefined);
  });

  it('does not prevent a start if the disk cannot be written, and is written later', () => {
    using dir = tempDir();
    const paths = placesIn(dir);
    let isFull = true;
    const before = ({ op }: { op: string }): void => {
      if (isFull && op.startsWith('state-mark'))
        throw Object.assign(new Error('full'), { code: 'ENOSPC', errno: -28, syscall: 'open' });
    };
    const mark = openStateMark(paths, createDurableFs({ before }), 'boot-1');
    assert.deepEqual([mark.read(), fs.existsSync(paths.stateMark)], [undefined, false]);
    isFull = false;
    assert.equal(mark.renew(), undefined);
    assert.deepEqual([mark.read() === undefined, fs.existsSync(paths.stateMark)], [false, true]);
  });
});

describe('the guard of durable operations', () => {
  it('refuses each operation below a replaced state or policy directory, and none elsewhere', () => {
    using dir = tempDir();
    const paths = placesIn(dir);
    const mark = openStateMark(paths, createDurableFs(), 'boot-1');
    const durable = createDurableFs(withStateGuard(paths, mark));
    durable.writeFile('test', paths.ledger, '1', 0o600);
    fs.renameSync(paths.state, dir.join('away'));
    fs.mkdirSync(paths.state);
    for (const path of [paths.ledger, paths.current])
      assert.throws(() => durable.writeFile('test', path, '2', 0o600), { code: 'STATE_VANISHED' });
    assert.throws(() => durable.removeTree('test', paths.policy), { code: 'STATE_VANISHED' });
    durable.writeFile('test', paths.status, '2', 0o600);
    assert.deepEqual([fs.readdirSync(paths.state), fs.readdirSync(paths.policy)], [[], []]);
  });

  it('is not compared for each file of a cycle, because another directory does not contain the directory of the cycle', () => {
    using dir = tempDir();
    const paths = placesIn(dir);
    let compared = 0;
    const durable = createDurableFs(withStateGuard(paths, { requireOpened: () => void compared++ }));
    const cycle = `${paths.staging}/cycle-1`;
    fs.mkdirSync(paths.staging);
    durable.ensureDirectory('test', cycle, 0o700);
    const once = compared;
    assert.ok(once > 0);
    durable.ensureDirectory('test', `${cycle}/tree`, 0o700);
    for (const name of ['a', 'b', 'c']) durable.writeFile('test', `${cycle}/tree/${name}`, '1', 0o600);
    assert.equal(compared, once);
    fs.rmSync(paths.staging, { recursive: true });
    assert.throws(() => durable.writeFile('test', `${cycle}/tree/d`, '1', 0o600), { code: 'DISK_FAILED' });
  });
});

describe('a move of current', () => {
  it('is refused with a state directory that vanished', () => {
    using test = testHost();
    const { paths, durable } = test.host;
    const stateMark = openStateMark(paths, durable, 'boot-1');
    const host = { ...test.host, stateMark };
    requireMovable(host, { to: undefined, expected: [undefined] });
    fs.renameSync(paths.state, `${paths.state}.away`);
    fs.mkdirSync(paths.state);
    const move = () => requireMovable(host, { to: undefined, expected: [undefined] });
    assert.throws(move, { code: 'STATE_VANISHED' });
  });
});
