// A tree of a base and a delta has the guarantees of a tree of an archive: its path, its permissions, its removal after errors.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { type StageDeltaOptions, stageDelta } from '../../../../src/agent/staging/stage-delta.js';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { createDurableFs, type DurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { compress, plainDelta, publishedTree } from '../../../kit/delta/served-deltas.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';
import { sha256, signedTarget } from '../../../kit/repository/archive-builder.js';

/** A base of two files, of which the delta changes one. */
async function withDelta(dir: TempDir, durable: DurableFs = createDurableFs()): Promise<StageDeltaOptions> {
  const base = await publishedTree(
    writeTree(dir.join('base'), { 'a/kept': 'kept\n', list: 'one\n'.repeat(50) }),
  );
  const next = await publishedTree(
    writeTree(dir.join('next'), { 'a/kept': 'kept\n', list: 'two\n'.repeat(50) }),
  );
  const bytes = compress(plainDelta(base, next));
  fs.writeFileSync(dir.join('delta'), bytes);
  fs.mkdirSync(dir.join('staging'));
  const target = signedTarget(Buffer.alloc(10_000), next.manifestBytes);
  const { length, digest } = target;
  const { manifest } = target.release;
  const archive = { path: dir.join('archive'), length, digest, manifest };
  return {
    ...{ target, limits: defaultArchiveLimits, fs: durable, mode: 0o640, mtimeSeconds: 1_700_000_000 },
    base: { treePath: base.directory, manifest: base.manifest, manifestBytes: base.manifestBytes },
    delta: { path: dir.join('delta'), length: bytes.length, digest: sha256(bytes), manifest },
    copy: { target: target.path, archive, deltas: [] },
    directory: dir.join('staging', 'tree'),
  };
}

function rightsOf(root: string): string[] {
  return ['', 'a', 'a/kept', 'list'].map((name) => {
    const { mode, gid } = fs.lstatSync(`${root}/${name}`);
    return `${(mode & 0o7777).toString(8)} ${gid}`;
  });
}

describe('stageDelta', () => {
  it('sets mode, group and time of copied and of new files', async () => {
    using dir = tempDir();
    const options = await withDelta(dir);
    const groupId = process.getuid?.() === 0 ? 12_345 : (process.getgid?.() ?? 0);
    await stageDelta({ ...options, groupId });
    const own = (mode: number): string => `${mode} ${groupId}`;
    assert.deepEqual(rightsOf(options.directory), [own(750), own(750), own(640), own(640)]);
    for (const name of ['a/kept', 'list'])
      assert.equal(fs.statSync(`${options.directory}/${name}`).mtimeMs, 1_700_000_000_000);
    assert.equal(fs.readFileSync(`${options.directory}/list`, 'utf8'), 'two\n'.repeat(50));
  });

  it('removes the tree after an interruption, and after the disk becomes full', async () => {
    using dir = tempDir();
    const full = createDurableFs({
      before: ({ op }) => {
        if (op === 'stage.copy') throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
      },
    });
    const options = await withDelta(dir, full);
    await assert.rejects(stageDelta(options), { code: 'DISK_FULL' });
    const signal = AbortSignal.abort();
    await assert.rejects(stageDelta({ ...options, signal }), { code: 'INTERRUPTED' });
    assert.deepEqual(fs.readdirSync(dir.join('staging')), []);
  });

  it('never writes into an existing directory, or through a link in place of the tree', async () => {
    using dir = tempDir();
    const options = await withDelta(dir);
    fs.mkdirSync(options.directory);
    fs.writeFileSync(`${options.directory}/own`, 'x');
    await assert.rejects(stageDelta(options), { code: 'DISK_FAILED' });
    assert.deepEqual(fs.readdirSync(options.directory), ['own']);
    fs.rmSync(options.directory, { recursive: true });
    fs.symlinkSync(dir.join('next'), options.directory);
    await assert.rejects(stageDelta(options), { code: 'DISK_FAILED' });
    assert.equal(fs.readFileSync(dir.join('next', 'list'), 'utf8'), 'two\n'.repeat(50));
  });
});
