// The two modelled file systems, on recordings of a few changes: what a cut may lose, and what it must not.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { seeded } from '../../kit/assert/seeded.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import {
  type DiskRecording,
  differences,
  imageDigest,
  imageOf,
  openRecording,
  writeImage,
} from '../power/disk-image.js';
import { type CrashOptions, crashStates, type Profile } from './crash-states.js';
import type { FileOperation } from './recorded-operations.js';

/** @returns a line for each tree that may remain: names, contents and unusual modes */
function possible(
  profile: Profile,
  before: Readonly<Record<string, string>>,
  operations: readonly FileOperation[],
  options: Partial<CrashOptions> & { readonly atTheEnd?: boolean } = {},
): string[] {
  using dir = tempDir();
  for (const [path, content] of Object.entries(before)) {
    fs.mkdirSync(join(dir.path, path, '..'), { recursive: true });
    if (content === '/') fs.mkdirSync(dir.join(path), { recursive: true });
    else fs.writeFileSync(dir.join(path), content, { mode: 0o644 });
  }
  const recording = openRecording(dir.path)(operations);
  const from = options.atTheEnd ? recording.changes.length : 0;
  const states = [...crashStates(recording, { profile, random: seeded(1), subsets: 20, from, ...options })];
  return [...new Set(states.map(({ applied, torn }) => describeImage(recording, applied, torn)))].sort();
}

function describeImage(
  recording: DiskRecording,
  applied: readonly number[],
  torn: Parameters<typeof imageOf>[2],
): string {
  using dir = tempDir();
  const place = dir.join('image');
  writeImage(imageOf(recording, applied, torn), place);
  const names = fs.readdirSync(place, { recursive: true, withFileTypes: true });
  const lines = names.map((one) => {
    const path = join(one.parentPath, one.name);
    const name = path.slice(place.length + 1);
    if (one.isDirectory()) return `${name}/`;
    if (one.isSymbolicLink()) return `${name}->${fs.readlinkSync(path)}`;
    return `${name}=${fs.readFileSync(path, 'utf8').replaceAll('\0', '0')}`;
  });
  return lines.sort().join(' ');
}

const write = (path: string, text: string): FileOperation[] => [
  { kind: 'create', path, mode: 0o644 },
  { kind: 'open', path, at: 'begin' },
  { kind: 'write', path, offset: 'next', bytes: Buffer.from(text) },
];
const flush = (path: string): FileOperation => ({ kind: 'flush', path, what: 'all' });
const rename = (from: string, path: string): FileOperation => ({ kind: 'rename', from, path });
const atTheEnd = { atTheEnd: true };

describe('the weakest file system', () => {
  it('keeps of an unflushed file nothing, its name, half, or zeros', () => {
    assert.deepEqual(possible('posix', {}, write('a', 'abcd')), ['', 'a=', 'a=0000', 'a=ab', 'a=abcd']);
  });

  it('keeps the content of a flushed file and may lose its name', () => {
    assert.deepEqual(possible('posix', {}, [...write('a', 'abcd'), flush('a')], atTheEnd), ['', 'a=abcd']);
  });

  it('keeps a name with its directory, and may lose the content', () => {
    const states = possible('posix', {}, [...write('a', 'ab'), flush('.')], atTheEnd);
    assert.deepEqual(states, ['a=', 'a=00', 'a=a', 'a=ab']);
  });

  it('makes a rename in one directory durable completely or not at all, before the content that it names', () => {
    const operations = [...write('t', 'new'), rename('t', 'a')];
    const states = possible('posix', { a: 'old' }, operations, atTheEnd);
    assert.ok(states.includes('a='), 'the old content is gone and the new one is not there');
    assert.ok(states.includes('a=000'));
    assert.ok(states.every((one) => !/a=(?:new|n|000|) t=/.test(one)));
  });

  it('leaves old or new by the order write, flush, rename, flush of the directory', () => {
    const operations = [...write('t', 'new'), flush('t'), rename('t', 'a')];
    assert.deepEqual(possible('posix', { a: 'old' }, operations, atTheEnd), [
      'a=new',
      'a=old',
      'a=old t=new',
    ]);
    assert.deepEqual(possible('posix', { a: 'old' }, [...operations, flush('.')], atTheEnd), ['a=new']);
  });

  it('shows a move between directories at both places, at one or at none', () => {
    const before = { 'from/a': 'x', to: '/' };
    assert.deepEqual(possible('posix', before, [rename('from/a', 'to/a')], atTheEnd), [
      'from/ from/a=x to/',
      'from/ from/a=x to/ to/a=x',
      'from/ to/',
      'from/ to/ to/a=x',
    ]);
    const flushed = [rename('from/a', 'to/a'), flush('to')];
    assert.deepEqual(possible('posix', before, flushed, atTheEnd), [
      'from/ from/a=x to/ to/a=x',
      'from/ to/ to/a=x',
    ]);
  });

  it('loses a directory with all that is durable in it, as long as its own name is not', () => {
    const operations: FileOperation[] = [{ kind: 'mkdir', path: 'd', mode: 0o755 }, ...write('d/a', 'x')];
    const flushed = [...operations, flush('d/a'), flush('d')];
    assert.deepEqual(possible('posix', {}, flushed, atTheEnd), ['', 'd/ d/a=x']);
    assert.deepEqual(possible('posix', {}, [...operations, { kind: 'flush-all' }], atTheEnd), ['d/ d/a=x']);
  });

  it('may lose the newer of two changes of one name, never the older alone', () => {
    const operations: FileOperation[] = [
      { kind: 'symlink', path: 'l', target: 'one' },
      { kind: 'unlink', path: 'l' },
      { kind: 'symlink', path: 'l', target: 'two' },
    ];
    assert.deepEqual(possible('posix', {}, operations), ['', 'l->one', 'l->two']);
  });

  it('treats an omitted flush as one that never happened', () => {
    const operations = [...write('a', 'ab'), flush('a'), flush('.')];
    assert.deepEqual(possible('posix', {}, operations, atTheEnd), ['a=ab']);
    const without = new Set([2]);
    assert.ok(possible('posix', {}, operations, { ...atTheEnd, without }).includes('a='));
  });
});

describe('ext4 with ordered data', () => {
  it('puts names on the disk in their order, and moves whole', () => {
    const operations = [rename('from/a', 'to/a'), ...write('from/b', 'y'), rename('from/b', 'to/b')];
    assert.deepEqual(possible('ext4', { 'from/a': 'x', to: '/' }, operations, atTheEnd), [
      'from/ from/a=x to/',
      'from/ from/b= to/ to/a=x',
      'from/ from/b=y to/ to/a=x',
      'from/ to/ to/a=x',
      'from/ to/ to/a=x to/b=',
      'from/ to/ to/a=x to/b=y',
    ]);
  });

  it('commits every name with any flush, and content with its own alone', () => {
    const operations = [...write('a', 'x'), ...write('b', 'y'), flush('b')];
    assert.deepEqual(possible('ext4', {}, operations, atTheEnd), ['a= b=y', 'a=x b=y']);
  });

  it('may leave a file at the end of a block', () => {
    const long = 'x'.repeat(5000);
    const lengths = possible('ext4', {}, write('a', long), atTheEnd).map((one) => one.length);
    assert.deepEqual(lengths, [0, 2, 2 + 4096, 2 + 5000]);
  });
});

describe('an image of a disk', () => {
  it('equals the directory that it was read from, and reports a missing operation', () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('d'));
    fs.writeFileSync(dir.join('d', 'a'), 'x', { mode: 0o640 });
    fs.symlinkSync('d/a', dir.join('l'));
    const recording = openRecording(dir.path)([]);
    const image = imageOf(recording, [], new Map());
    assert.deepEqual(differences(image, dir.path), []);
    fs.chmodSync(dir.join('d', 'a'), 0o600);
    assert.equal(differences(image, dir.path).length, 1);
    fs.writeFileSync(dir.join('new'), '');
    assert.equal(differences(image, dir.path).length, 2);
  });

  it('has a digest of its contents, independent of their origin', () => {
    using dir = tempDir();
    const follow = openRecording(dir.path);
    const one = follow([...write('t', 'x'), rename('t', 'a')]);
    const other = follow(write('a', 'x'));
    const digest = (recording: DiskRecording): string =>
      imageDigest(imageOf(recording, recording.changes.keys(), new Map()));
    assert.equal(digest(one), digest(other));
    assert.notEqual(digest(one), digest(follow(write('a', 'y'))));
    assert.notEqual(
      digest(one),
      digest(follow([...write('a', 'x'), { kind: 'mode', path: 'a', mode: 0o600 }])),
    );
  });

  it('is refused for a recording that begins in the middle', () => {
    using dir = tempDir();
    assert.throws(() => openRecording(dir.path)([{ kind: 'unlink', path: 'never/seen' }]));
  });
});
