import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createTreeWriter, type TreeWriter } from '../../../../src/agent/staging/stage-tree.js';
import { type Digest, digestFromHex } from '../../../../src/core/names.js';
import type { ManifestFile } from '../../../../src/core/release/manifest.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { unboundedPace } from '../../../../src/platform/time/rate-limit.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const content = Buffer.from('example.com CNAME .\n'.repeat(100));

function fileOf(path: string, bytes: Buffer): ManifestFile {
  const digest = digestFromHex(createHash('sha256').update(bytes).digest('hex')) as Digest;
  return { path, sizeBytes: bytes.length, digest, executable: false };
}

interface Written {
  readonly tree: string;
  /** Labels of what was done to files, in order. */
  readonly operations: string[];
}

function write(
  act: (writer: TreeWriter) => void,
  assertWritten: (written: Written) => void = () => undefined,
): void {
  using place = tempDir();
  const tree = join(place.path, 'tree');
  const operations: string[] = [];
  const durable = createDurableFs({ before: ({ op }) => operations.push(op) });
  const nothing = { bytes: 0, inodes: 0 };
  const writer = createTreeWriter({
    ...{ treePath: tree, fs: durable, mode: 0o644, mtimeSeconds: 1, what: 'dns-edge 1' },
    otherSpace: { written: nothing, pending: nothing },
  });
  try {
    act(writer);
    assertWritten({ tree, operations });
  } finally {
    writer.abandon();
  }
}

function writeFile(writer: TreeWriter, file: ManifestFile, pieces: readonly Buffer[]): void {
  writer.open(file);
  for (const piece of pieces) writer.write(piece);
  writer.close();
}

describe('createTreeWriter', () => {
  const cuts = [
    ['one piece', [content]],
    ['two pieces', [content.subarray(0, 7), content.subarray(7)]],
    ['a piece for each byte', [...content].map((byte) => Buffer.from([byte]))],
  ] as const;
  for (const [name, pieces] of cuts) {
    it(`accepts a file in ${name} that matches the manifest`, () => {
      write(
        (writer) => writeFile(writer, fileOf('a', content), pieces),
        ({ tree }) => assert.deepEqual(fs.readFileSync(join(tree, 'a')), content),
      );
    });

    it(`refuses a file in ${name} that has another byte`, () => {
      const other = Buffer.from(content);
      other[5] = 0x58;
      write((writer) => {
        assert.throws(() => writeFile(writer, fileOf('a', other), pieces), { code: 'MANIFEST_MISMATCH' });
      });
    });
  }

  it('accepts an empty file', () => {
    const empty = Buffer.alloc(0);
    write((writer) => writeFile(writer, fileOf('empty', empty), []));
    write((writer) => {
      const lie = { ...fileOf('empty', content), sizeBytes: 0 };
      assert.throws(() => writeFile(writer, lie, []), { code: 'MANIFEST_MISMATCH' });
    });
  });

  it('rejects content after a complete file', () => {
    write((writer) => {
      const pieces = [content, Buffer.from('more')];
      assert.throws(() => writeFile(writer, fileOf('a', content), pieces), { code: 'INTERNAL' });
    });
  });

  it('needs three operations for a small file, and creates a directory once', () => {
    write(
      (writer) => {
        for (const name of ['a', 'b', 'c']) writeFile(writer, fileOf(`rules/${name}`, content), [content]);
      },
      ({ operations }) => {
        const perFile = ['stage.file:create', 'stage.file:write', 'stage.file:time'];
        assert.deepEqual(operations, ['stage.tree', 'stage.tree', ...perFile, ...perFile, ...perFile]);
      },
    );
  });
});

describe('a copy into a tree', () => {
  /** @param meddle done to the copy before it is digested */
  async function copied(bytes: Buffer, meddle: (path: string) => void): Promise<void> {
    using place = tempDir();
    const durable = createDurableFs({ after: ({ op, path }) => op === 'stage.copy' && meddle(path) });
    const nothing = { bytes: 0, inodes: 0 };
    const writer = createTreeWriter({
      ...{ treePath: place.join('tree'), fs: durable, mode: 0o644, mtimeSeconds: 1, what: 'dns-edge 1' },
      otherSpace: { written: nothing, pending: nothing },
    });
    const path = place.join('base');
    fs.writeFileSync(path, bytes);
    const descriptor = fs.openSync(path, 'r');
    try {
      await writer.copy(fileOf('a', bytes), { descriptor, path }, unboundedPace());
      assert.deepEqual(fs.readFileSync(place.join('tree', 'a')), bytes);
    } finally {
      writer.abandon();
      fs.closeSync(descriptor);
    }
  }

  for (const sizeBytes of [0, 7, 131_071, 131_072, 300_000]) {
    const bytes = Buffer.alloc(sizeBytes, 'zone');
    it(`matches the manifest: ${sizeBytes} bytes`, async () => {
      await copied(bytes, () => undefined);
    });

    it(`is digested from the new file, and not from the bytes that were read: ${sizeBytes} bytes`, async () => {
      const grown = copied(bytes, (path) => fs.appendFileSync(path, 'x'));
      await assert.rejects(grown, { code: 'MANIFEST_MISMATCH' });
      const other = Buffer.alloc(sizeBytes, 'enoz');
      if (sizeBytes === 0) return;
      const changed = copied(bytes, (path) => fs.writeFileSync(path, other));
      await assert.rejects(changed, { code: 'MANIFEST_MISMATCH' });
    });
  }
});
