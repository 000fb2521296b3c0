import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { assertRefused, jail, snapshot, stage } from '../../../kit/host/stage-harness.js';
import { type BundleFile, bundleTar, manifestOf } from '../../../kit/repository/archive-builder.js';

const files: readonly BundleFile[] = [
  { path: 'block.rpz', content: 'example.com CNAME .\n'.repeat(20_000) },
  { path: 'bin/check', content: '#!/bin/sh\n', executable: true },
  { path: 'empty', content: '' },
  { path: `views/${'long-name-'.repeat(12)}/grün.yaml`, content: 'a: 1\n' },
];
const tar = bundleTar(files);
const manifest = manifestOf(files);

function modesOf(root: string): Record<string, string> {
  const names = ['', ...fs.readdirSync(root, { recursive: true, encoding: 'utf8' })];
  return Object.fromEntries(
    names.map((name) => [name, (fs.lstatSync(join(root, name)).mode & 0o7777).toString(8)]),
  );
}

describe('stageBundle', () => {
  it('creates exactly the files of SOURCE, without the manifest', async () => {
    using place = jail();
    const staged = await stage(place, { tar, manifest });
    assert.equal(staged.treePath, join(place.staging, 'tree'));
    assert.deepEqual(staged.manifestBytes, manifest);
    assert.equal(staged.bundle, 'dns-edge');
    assert.equal(staged.release.serial, 7);
    assert.equal(fs.existsSync(staged.copy.archive.path), true);
    for (const { path, content } of files) {
      assert.equal(fs.readFileSync(join(staged.treePath, path), 'utf8'), content);
    }
    const found = fs
      .readdirSync(staged.treePath, { recursive: true, encoding: 'utf8' })
      .filter((name) => fs.statSync(join(staged.treePath, name)).isFile());
    assert.deepEqual(found.sort(), files.map((file) => file.path).sort());
  });

  it('sets the configured time of each file', async () => {
    using place = jail();
    const { treePath } = await stage(place, { tar, manifest, options: { mtimeSeconds: 1_234_567_890 } });
    for (const { path } of files) {
      assert.equal(fs.statSync(join(treePath, path)).mtimeMs, 1_234_567_890_000);
    }
  });

  const modes = [
    [0o644, '644', '755'],
    [0o640, '640', '750'],
    [0o600, '600', '700'],
    [0o444, '444', '555'],
  ] as const;
  for (const [mode, plain, executable] of modes) {
    it(`derives the modes of executables and directories from ${plain}`, async (t) => {
      // Without w for the owner only root can write into the directory, as an agent that is root does.
      if (mode === 0o444 && process.getuid?.() !== 0) return t.skip('needs root');
      using place = jail();
      const { treePath } = await stage(place, { tar, manifest, options: { mode } });
      const found = modesOf(treePath);
      assert.equal(found['block.rpz'], plain);
      assert.equal(found['bin/check'], executable);
      assert.equal(found['bin'], executable);
      assert.equal(found[''], executable);
    });
  }

  it('sets modes against a umask of 077', () => {
    const script = `
      process.umask(0o077);
      const { jail, stage } = await import(${JSON.stringify(new URL('../../../kit/host/stage-harness.js', import.meta.url).href)});
      const { bundleTar, manifestOf } = await import(${JSON.stringify(new URL('../../../kit/repository/archive-builder.js', import.meta.url).href)});
      const { statSync } = await import('node:fs');
      const files = [{ path: 'd/plain', content: 'x' }, { path: 'd/run', content: 'y', executable: true }];
      const place = jail();
      const { treePath } = await stage(place, { tar: bundleTar(files), manifest: manifestOf(files) });
      const modes = ['', '/d', '/d/plain', '/d/run'].map((name) => (statSync(treePath + name).mode & 0o7777).toString(8));
      console.log(modes.join(' '));
      place[Symbol.dispose]();
    `;
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    assert.equal(output.trim(), '755 755 644 755');
  });

  it('sets the group of the tree', async (t) => {
    if (process.getuid?.() !== 0) return t.skip('needs root');
    using place = jail();
    const { treePath } = await stage(place, { tar, manifest, options: { groupId: 4242 } });
    for (const name of ['', 'bin', 'block.rpz', 'bin/check']) {
      assert.equal(fs.statSync(join(treePath, name)).gid, 4242);
    }
    assert.equal(modesOf(treePath)['bin/check'], '755');
  });

  it('reads gzip if the name of the target ends with .gz', async () => {
    using place = jail();
    const path = 'dns-edge/stable.tar.gz';
    const { treePath } = await stage(place, { tar, manifest, archive: gzipSync(tar), target: { path } });
    assert.equal(fs.readFileSync(join(treePath, 'bin/check'), 'utf8'), '#!/bin/sh\n');
  });

  it('accepts a bundle without files', async () => {
    using place = jail();
    const { treePath } = await stage(place, { tar: bundleTar([]), manifest: manifestOf([]) });
    assert.deepEqual(fs.readdirSync(treePath), []);
  });

  it('keeps the event loop free', async () => {
    using place = jail();
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);
    const big = [{ path: 'big', content: Buffer.alloc(20_000_000, 'policy ') }];
    await stage(place, { tar: bundleTar(big), manifest: manifestOf(big), limits: { maxRatio: 1e9 } });
    clearInterval(timer);
    assert.ok(turns > 3, `the loop turned ${turns} times`);
  });

  it('removes the tree and fails with INTERRUPTED after an interruption', async () => {
    await assertRefused({ tar, manifest, options: { signal: AbortSignal.abort() } }, 'INTERRUPTED');
  });

  it('removes the tree after the disk becomes full', async () => {
    using place = jail(
      createDurableFs({
        before: ({ op, path }) => {
          if (op === 'stage.tree' && path.endsWith('views')) {
            throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
          }
        },
      }),
    );
    await assert.rejects(stage(place, { tar, manifest }), { code: 'DISK_FULL' });
    assert.deepEqual(fs.readdirSync(place.staging), ['archive']);
  });

  it('throws the first error if the tree cannot be removed either', async () => {
    using place = jail(
      createDurableFs({
        before: ({ op }) => {
          if (op === 'stage.discard') throw Object.assign(new Error('no'), { code: 'EIO' });
        },
      }),
    );
    await assert.rejects(stage(place, { tar: Buffer.alloc(1024), manifest }), { code: 'ARCHIVE_MALFORMED' });
  });

  it('never writes into an existing directory', async () => {
    using place = jail();
    fs.mkdirSync(join(place.staging, 'tree'));
    fs.writeFileSync(join(place.staging, 'tree', 'kept'), 'x');
    await assert.rejects(stage(place, { tar, manifest }), { code: 'DISK_FAILED' });
    assert.deepEqual(fs.readdirSync(join(place.staging, 'tree')), ['kept']);
  });

  it('never writes through a link in place of the tree', async () => {
    using place = jail();
    fs.symlinkSync(place.dir.join('policy'), join(place.staging, 'tree'));
    const before = snapshot(place.dir.join('policy'));
    await assert.rejects(stage(place, { tar, manifest }), { code: 'DISK_FAILED' });
    assert.deepEqual(snapshot(place.dir.join('policy')), before);
  });
});
