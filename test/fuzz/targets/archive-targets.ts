// Targets for the content of an archive: the tar and the manifest.
import assert from 'node:assert/strict';
import { defaultArchiveLimits } from '../../../src/core/limits.js';
import { encodeManifest, type Manifest, parseManifest } from '../../../src/core/release/manifest.js';
import { createTarReader } from '../../../src/core/release/tar-reader.js';
import type { Seeded } from '../../kit/assert/seeded.js';
import {
  bundleTar,
  endOfArchive,
  manifestOf,
  paxEntry,
  tarEntry,
} from '../../kit/repository/archive-builder.js';
import { changeJson } from '../engine/change-json.js';
import { acceptedOr, inPieces, type Target } from '../engine/target.js';

export interface TarFile {
  readonly path: string;
  readonly mode: number;
  readonly sizeBytes: number;
  content: string;
}

export type TarRead = (pieces: Iterable<Buffer>) => readonly TarFile[];

export function readTar(pieces: Iterable<Buffer>): readonly TarFile[] {
  const files: TarFile[] = [];
  let open: TarFile | undefined;
  const reader = createTarReader(
    {
      begin: ({ path, mode, sizeBytes }) => {
        assert.equal(open, undefined, 'a file begins inside another');
        open = { path: path.toString('latin1'), mode, sizeBytes, content: '' };
      },
      data: (chunk) => {
        assert.ok(open !== undefined, 'bytes of no file');
        open.content += chunk.toString('latin1');
      },
      end: () => {
        assert.ok(open !== undefined, 'an end of no file');
        assert.equal(open.content.length, open.sizeBytes);
        files.push(open);
        open = undefined;
      },
    },
    { maxPaxBytes: 2000 },
  );
  for (const piece of pieces) reader.write(piece);
  reader.finish();
  assert.equal(open, undefined, 'a file without its end');
  return files;
}

/** @param read reader under test; a test passes a broken one */
export function tarTarget(read: TarRead = readTar): Target {
  const codes = ['ARCHIVE_MALFORMED', 'ENTRY_REFUSED'];
  const long = `${'d'.repeat(90)}/${'f'.repeat(60)}`;
  return {
    name: 'tar',
    seeds: [
      bundleTar([
        { path: 'a/b.conf', content: 'x'.repeat(600) },
        { path: 'run', content: '#!', executable: true },
      ]),
      Buffer.concat([
        paxEntry([['path', long]]),
        tarEntry({ path: long.slice(0, 99), content: 'y' }),
        endOfArchive,
      ]),
      Buffer.concat([
        paxEntry([
          ['size', '3'],
          ['path', 'c'],
        ]),
        tarEntry({ path: 'c', content: 'abc' }),
        endOfArchive,
      ]),
      endOfArchive,
    ],
    tokens: [
      'ustar\u000000',
      '11 path=ab\n',
      '9 size=3\n',
      '0000644\0',
      '0000755\0',
      '\0'.repeat(512),
      'x',
      '../',
    ],
    make: madeTar,
    repair: withChecksums,
    check: (input) => {
      const whole = acceptedOr(codes, () => read([input]));
      for (const sizes of [[1, 511, 513], [512], [7]]) {
        assert.deepEqual(
          acceptedOr(codes, () => read(inPieces(input, sizes))),
          whole,
          `in pieces of ${sizes}`,
        );
      }
    },
  };
}

/** @returns entries with header values that are valid alone */
function madeTar(random: Seeded): Buffer {
  const entries = Array.from({ length: 1 + random.int(4) }, () => {
    const content = Buffer.alloc(random.pick([0, 1, 511, 512, 513, random.int(1500)]), 'x');
    const path = random.pick(['a', 'a/b', '../a', '/a', 'a\0b', 'ü', 'x'.repeat(random.int(300)), '']);
    const mode = random.pick([0o644, 0o755, 0o4755, 0]);
    const type = random.once(5) ? random.pick(['1', '2', '5', 'L', 'g', '\0']) : '0';
    const entry = tarEntry({
      path,
      content,
      mode,
      type,
      ...(random.once(8) ? { size: random.int(5000) } : {}),
    });
    if (!random.once(3)) return entry;
    const size = random.once(2)
      ? `${content.length}`
      : random.pick(['-1', '00', '99999999999999999999', 'x']);
    const record = random.pick([
      ['path', path],
      ['size', size],
      ['mtime', '1'],
      ['linkpath', '/'],
    ] as const);
    return Buffer.concat([paxEntry([record]), entry]);
  });
  return Buffer.concat([...entries, endOfArchive]);
}

/** Corrects the checksum of each block that has the form of a header. */
function withChecksums(input: Buffer): Buffer {
  const copy = Buffer.from(input);
  for (let at = 0; at + 512 <= copy.length; at += 512) {
    const block = copy.subarray(at, at + 512);
    if (block.toString('latin1', 257, 262) !== 'ustar') continue;
    block.fill(0x20, 148, 156);
    const sum = block.reduce((total, byte) => total + byte, 0);
    block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  }
  return copy;
}

/** @param parse parser under test; a test passes a broken one */
export function manifestTarget(parse: (bytes: Buffer) => Manifest = parseBounded): Target {
  return {
    name: 'manifest',
    reshape: changeJson,
    seeds: [
      manifestOf([
        { path: 'a/b.conf', content: 'x' },
        { path: 'a/c', content: '', executable: true },
        { path: 'ü', content: 'y' },
      ]),
      manifestOf([]),
    ],
    tokens: [
      ...['"files":[', '"path":"', '"size":', '"sha256":"', '"executable":true', '"writ":1', '{}', '[]', ','],
      ...['..', '/', '\\u0000', '\\ud800', '"__proto__":', ' ', '1.0', '1e2'],
    ],
    check: (input) => {
      const codes = ['MANIFEST_MALFORMED', 'ARCHIVE_LIMIT'];
      const read = acceptedOr(codes, () => parse(input));
      // Only the canonical form is accepted, because its bytes are signed.
      if ('value' in read) assert.deepEqual(encodeManifest(read.value), input);
    },
  };
}

function parseBounded(bytes: Buffer): Manifest {
  return parseManifest(bytes, { ...defaultArchiveLimits, maxEntries: 50 });
}
