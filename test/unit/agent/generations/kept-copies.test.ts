// The retained copy of a release, and the list of its files: written, read, and refused if it belongs to another release.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import {
  isCopyPresent,
  type KeptCopy,
  type KeptFile,
  readKeptCopy,
  writeKeptCopy,
} from '../../../../src/agent/generations/kept-copies.js';
import { type Digest, digestFromHex } from '../../../../src/core/names.js';
import { maxKeptDeltas } from '../../../../src/core/release/kept-delta-rules.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

const digest = (letter: string): Digest => digestFromHex(letter.repeat(64)) as Digest;

function file(dir: TempDir, name: string, tree: string): KeptFile {
  const path = dir.join(name);
  fs.writeFileSync(path, name);
  return { path, length: name.length, digest: digest('f'), manifest: { digest: digest(tree), length: 9 } };
}

function copyIn(dir: TempDir, deltas = ['b', 'c']): KeptCopy {
  const archive = file(dir, 'an-archive', 'a');
  return {
    target: 'access/stable.tar.br',
    archive,
    deltas: deltas.map((tree) => file(dir, `to-${tree}`, tree)),
  };
}

/** The copy in the form of a release record. */
const own = (dir: TempDir, tree: string): KeptCopy => ({
  ...copyIn(dir, []),
  archive: file(dir, 'own', tree),
});

function written(dir: TempDir, copy: KeptCopy): string {
  const kept = dir.join('kept');
  fs.mkdirSync(kept);
  writeKeptCopy(createDurableFs(), kept, copy);
  return kept;
}

describe('the retained copy of a release', () => {
  it('is its own archive, which is moved', () => {
    using dir = tempDir();
    const kept = written(dir, copyIn(dir, []));
    assert.deepEqual(fs.readdirSync(kept), ['archive.tar.br']);
    assert.equal(fs.existsSync(dir.join('an-archive')), false);
    assert.equal(readKeptCopy(kept, own(dir, 'a')).archive.path, dir.join('own'));
  });

  it('is a base archive and deltas as hard links, with a list of them', () => {
    using dir = tempDir();
    const copy = copyIn(dir);
    const kept = written(dir, copy);
    assert.deepEqual(fs.readdirSync(kept).sort(), ['base.tar.br', 'delta-1', 'delta-2', 'deltas.json']);
    const read = readKeptCopy(kept, own(dir, 'c'));
    assert.ok(isCopyPresent(read));
    for (const [index, one] of [read.archive, ...read.deltas].entries()) {
      const was = [copy.archive, ...copy.deltas][index];
      assert.deepEqual({ ...one, path: '' }, { ...was, path: '' });
      assert.equal(fs.statSync(one.path).ino, fs.statSync(was?.path ?? '').ino);
    }
  });

  it('is not present if a file is missing or has another length', () => {
    using dir = tempDir();
    const kept = written(dir, copyIn(dir));
    const read = readKeptCopy(kept, own(dir, 'c'));
    fs.appendFileSync(read.deltas[1]?.path ?? '', 'x');
    assert.equal(isCopyPresent(read), false);
    fs.rmSync(read.deltas[1]?.path ?? '');
    assert.equal(isCopyPresent(read), false);
  });
});

describe('a list of retained deltas', () => {
  const bent: Readonly<Record<string, (list: Record<string, unknown>) => unknown>> = {
    'that leads to another release': (list) => ({ ...list, deltas: [(list['deltas'] as unknown[])[0]] }),
    'without deltas': (list) => ({ ...list, deltas: [] }),
    'of too many': (list) => {
      const rows = list['deltas'] as unknown[];
      return { ...list, deltas: [...Array.from({ length: maxKeptDeltas }, () => rows[0]), rows[1]] };
    },
    'without an archive': (list) => ({ ...list, archive: undefined }),
    'without a name of the archive': (list) => ({ ...list, target: 7 }),
    'with half a row': (list) => ({ ...list, deltas: [{ length: 4 }, ...(list['deltas'] as unknown[])] }),
    'with a length that is none': (list) => ({
      ...list,
      archive: { ...(list['archive'] as object), length: -1 },
    }),
    'with a length of a manifest that is none': (list) => {
      const archive = list['archive'] as { manifest: object };
      return { ...list, archive: { ...archive, manifest: { ...archive.manifest, length: -1 } } };
    },
    'that is no object': () => 'deltas',
    'that is nothing': () => null,
  };
  for (const [name, bend] of Object.entries(bent)) {
    it(`${name} is damage`, () => {
      using dir = tempDir();
      const kept = written(dir, copyIn(dir));
      const path = `${kept}/deltas.json`;
      fs.writeFileSync(path, JSON.stringify(bend(JSON.parse(fs.readFileSync(path, 'utf8')))));
      throwsCode('STATE_DAMAGED', () => readKeptCopy(kept, own(dir, 'c')));
    });
  }

  it('is not read through a link, and never without a limit', () => {
    using dir = tempDir();
    const kept = written(dir, copyIn(dir));
    const path = `${kept}/deltas.json`;
    fs.renameSync(path, dir.join('elsewhere'));
    fs.symlinkSync(dir.join('elsewhere'), path);
    throwsCode('STATE_DAMAGED', () => readKeptCopy(kept, own(dir, 'c')));
    fs.rmSync(path);
    fs.writeFileSync(path, ' '.repeat(200_000));
    throwsCode('STATE_DAMAGED', () => readKeptCopy(kept, own(dir, 'c')));
  });
});
