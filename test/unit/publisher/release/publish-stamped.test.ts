// A publish that fills serial and source into files of SOURCE: what is packed and signed, what counts as the same, and what
// is refused.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { brotliDecompressSync } from 'node:zlib';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { unstamped } from '../../../../src/core/release/stamps.js';
import { readSourceTree } from '../../../../src/publisher/archive/source-tree.js';
import { readStamps } from '../../../../src/publisher/archive/stamp-tree.js';
import type { PublishResult } from '../../../../src/publisher/release/publish.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';
import { seenByHost } from '../../../kit/repository/published-tree.js';
import {
  type SampleRepository,
  sampleRepository,
  someKeys,
} from '../../../kit/repository/sample-repository.js';

const zone = 'stamp TXT "@writ.serial@ @writ.source@"\nagain TXT "@writ.serial@"\nbad CNAME .\n';
const tree = { 'block.rpz': zone, 'notes.txt': 'for people: @writ.serial@\n' };
const stamp = ['block.rpz'];
const serialOf = ({ release }: PublishResult): number => release.serial;

async function archiveText(repository: SampleRepository): Promise<string> {
  return brotliDecompressSync((await seenByHost(repository)).archive ?? '').toString('latin1');
}

describe('a publish with stamps', () => {
  it('writes its serial and the name of the tree into each named file, and into no other', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ 'block.rpz': 'first\n' });
    const done = await repository.publish(tree, { stamp });
    const name = done.tree.manifestDigest.slice('sha256:'.length).slice(0, 16);
    const text = await archiveText(repository);
    assert.ok(text.includes(`stamp TXT "2 ${name}"\nagain TXT "2"\nbad CNAME .\n`));
    assert.ok(text.includes('for people: @writ.serial@\n'));
  });

  it('signs the tree that is packed, and what its files were before', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const { tree: read } = await repository.publish(tree, { stamp });
    const { release } = await seenByHost(repository);
    const before = read.manifest.files.find((one) => one.path === 'block.rpz');
    assert.ok(release?.stamped && before);
    assert.equal(release.stamped.source, read.manifestDigest);
    assert.notEqual(release.manifest.digest, read.manifestDigest);
    const { sizeBytes: length, digest } = before;
    const at = [
      { offset: 11, mark: 'serial' },
      { offset: 25, mark: 'source' },
      { offset: 51, mark: 'serial' },
    ];
    assert.deepEqual(release.stamped.stamps, [{ path: 'block.rpz', length, digest, at }]);
    assert.deepEqual(unstamped(read.manifest, release.stamped.stamps), read.manifest);
  });

  it('is nothing new for the same tree with the same stamps, though its serial would be another', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(tree, { stamp });
    const before = directoryState(repository.directory);
    assert.equal((await repository.publish(tree, { stamp })).kind, 'nothing-new');
    assert.deepEqual(directoryState(repository.directory), before);
    const other = await repository.publish(tree, { stamp: ['block.rpz', 'notes.txt'] });
    assert.deepEqual([other.kind, serialOf(other)], ['live', 2]);
    const without = await repository.publish(tree);
    assert.deepEqual([without.kind, serialOf(without), without.release.stamped], ['live', 3, undefined]);
    const again = await repository.publish(tree, { stamp });
    assert.deepEqual([again.kind, serialOf(again)], ['live', 4]);
  });

  it('reports the changes of the trees without those of their stamps', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(tree, { stamp });
    const second = await repository.publish({ ...tree, 'notes.txt': 'other\n' }, { stamp });
    assert.deepEqual(second.kind === 'live' && second.difference, {
      added: [],
      changed: ['notes.txt'],
      removed: [],
    });
  });

  it('that was signed without the online keys is published as it was signed', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const keys = someKeys(dir, repository, 'targets.key');
    const waiting = await repository.publish(tree, { stamp, keys });
    assert.equal(waiting.kind, 'waiting');
    const live = await repository.publish(tree, { stamp });
    assert.deepEqual([live.kind, serialOf(live)], ['live', 1]);
    assert.ok((await archiveText(repository)).includes('stamp TXT "1 '));
  });

  for (const [name, named, text] of [
    ['a path that SOURCE has not', 'zones/block.rpz', /no file zones\/block.rpz/],
    ['a file without a placeholder', 'plain.txt', /neither @writ.serial@ nor @writ.source@/],
  ] as const) {
    it(`is refused for ${name}, and nothing is written`, async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir);
      const before = directoryState(repository.directory);
      const files = { ...tree, 'plain.txt': '@writ.serial' };
      await assert.rejects(repository.publish(files, { stamp: [...stamp, named] }), {
        code: 'SOURCE_REFUSED',
        message: text,
      });
      assert.deepEqual(directoryState(repository.directory), before);
    });
  }

  it('is refused for more files, or more bytes, than are held in memory', async () => {
    using dir = tempDir();
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`f${at}`, '@writ.serial@']));
    const source = await readSourceTree(writeTree(dir.join('many'), many), defaultArchiveLimits);
    const refusal = (expected: number, actual: number) => ({
      code: 'SOURCE_REFUSED',
      facts: { expected, actual },
    });
    assert.throws(() => readStamps(source, Object.keys(many)), refusal(100, 101));
    assert.equal(readStamps(source, Object.keys(many).slice(1)).contents.size, 100);
    writeTree(dir.join('large'), { a: '@writ.serial@' });
    fs.truncateSync(dir.join('large/a'), 64_000_001);
    const large = await readSourceTree(dir.join('large'), defaultArchiveLimits);
    assert.throws(() => readStamps(large, ['a']), refusal(64_000_000, 64_000_001));
  });

  it('is refused when the file changed since the tree was read', async () => {
    using dir = tempDir();
    const source = await readSourceTree(writeTree(dir.join('source'), tree), defaultArchiveLimits);
    fs.writeFileSync(dir.join('source/block.rpz'), zone.replace('bad', 'new'));
    assert.throws(() => readStamps(source, stamp), {
      code: 'SOURCE_REFUSED',
      message: /changed while it was read/,
    });
  });
});
