import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Header, Pax } from 'tar';
import { createTarReader } from '../../../../src/core/release/tar-reader.js';
import {
  type EntryFields,
  endOfArchive,
  paxEntry,
  tarEntry,
} from '../../../kit/repository/archive-builder.js';

interface Seen {
  readonly path: string;
  readonly mode: number;
  content: string;
  ended: boolean;
}

/** Reads a tar in pieces of these sizes, over and over. */
function read(tar: Buffer, pieces: readonly number[] = [tar.length]): Seen[] {
  const seen: Seen[] = [];
  const last = (): Seen => seen.at(-1) as Seen;
  const reader = createTarReader(
    {
      begin: ({ path, mode }) => void seen.push({ path: path.toString(), mode, content: '', ended: false }),
      data: (chunk) => {
        last().content += chunk.toString('latin1');
      },
      end: () => {
        last().ended = true;
      },
    },
    { maxPaxBytes: 2000 },
  );
  for (let at = 0, turn = 0; at < tar.length; turn += 1) {
    const size = pieces[turn % pieces.length] ?? 1;
    reader.write(tar.subarray(at, at + size));
    at += size;
  }
  reader.finish();
  return seen;
}

function assertMalformed(tar: Buffer, code = 'ARCHIVE_MALFORMED'): void {
  assert.throws(() => read(tar), { code });
}

function patched(at: number, bytes: string | Buffer, fields: Partial<EntryFields> = {}): Buffer {
  return tarEntry({ path: 'a', ...fields, patch: [{ at, bytes: Buffer.from(bytes) }] });
}

const one = tarEntry({ path: 'a', content: 'hello' });
const long = `${'ü'.repeat(60)}/${'x'.repeat(120)}`;

describe('createTarReader', () => {
  it('calls the visitor with path, mode, content and end of each file', () => {
    const tar = Buffer.concat([
      one,
      tarEntry({ path: 'b/c', content: '', mode: 0o755 }),
      tarEntry({ path: 'd', content: 'y'.repeat(512) }),
      endOfArchive,
    ]);
    assert.deepEqual(read(tar), [
      { path: 'a', mode: 0o644, content: 'hello', ended: true },
      { path: 'b/c', mode: 0o755, content: '', ended: true },
      { path: 'd', mode: 0o644, content: 'y'.repeat(512), ended: true },
    ]);
  });

  it('has the same result for pieces of any size', () => {
    const tar = Buffer.concat([
      one,
      paxEntry([['path', long]]),
      tarEntry({ path: long, content: 'z'.repeat(700) }),
      endOfArchive,
    ]);
    const whole = read(tar);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 1500 }), { minLength: 1, maxLength: 20 }), (pieces) => {
        assert.deepEqual(read(tar, pieces), whole);
      }),
      { numRuns: 200 },
    );
    assert.deepEqual(read(tar, [1]), whole);
  });

  it('reads what the tar package writes', () => {
    const header = (path: string, size: number): Buffer => {
      const block = Buffer.alloc(512);
      const fields = { path, size, mode: 0o644, uid: 0, gid: 0, mtime: new Date(0), type: 'File' } as const;
      const needsPax = new Header(fields).encode(block);
      return needsPax ? Buffer.concat([new Pax({ path }).encode(), block]) : block;
    };
    const paths = ['a', `${'d'.repeat(90)}/${'e'.repeat(90)}`, 'grün/ß.yaml', 'n'.repeat(200), long];
    const tar = Buffer.concat([...paths.map((path) => header(path, 0)), endOfArchive]);
    assert.deepEqual(
      read(tar).map((file) => file.path),
      paths,
    );
  });

  it('joins the prefix of a long path', () => {
    const entry = patched(345, 'some/prefix');
    assert.equal(read(Buffer.concat([entry, endOfArchive]))[0]?.path, 'some/prefix/a');
  });

  it('accepts zeros after the end up to a tape record', () => {
    assert.equal(read(Buffer.concat([one, endOfArchive, Buffer.alloc(8192)])).length, 1);
    assertMalformed(Buffer.concat([one, endOfArchive, Buffer.alloc(10_752)]));
  });

  it('refuses an archive without its end', () => {
    assertMalformed(Buffer.alloc(0));
    assertMalformed(one);
    assertMalformed(Buffer.concat([one, Buffer.alloc(512)]));
    assertMalformed(Buffer.concat([one, Buffer.alloc(1023)]));
    assertMalformed(Buffer.concat([one, Buffer.alloc(1030)]));
  });

  it('rejects data after the end, and after one end block', () => {
    assertMalformed(Buffer.concat([one, endOfArchive, Buffer.from('x')]));
    assertMalformed(Buffer.concat([one, endOfArchive, one, endOfArchive]));
    assertMalformed(Buffer.concat([one, Buffer.alloc(512), one, endOfArchive]));
  });

  it('refuses data in padding', () => {
    const dirty = Buffer.from(one);
    dirty[1023] = 1;
    assertMalformed(Buffer.concat([dirty, endOfArchive]));
  });

  it('refuses a header that is not exact', () => {
    const cases = {
      'a wrong checksum': tarEntry({ path: 'a', checksum: '0000000\0' }),
      'a checksum that is no number': tarEntry({ path: 'a', checksum: 'xxxxxxxx' }),
      'the magic of GNU': patched(257, 'ustar  \0'),
      'no magic': patched(257, Buffer.alloc(8)),
      'bytes behind the end of a name': patched(0, 'a\0hidden'),
      'a size in base 256': patched(124, Buffer.from('800000000000000000000005', 'hex')),
      'a negative size': patched(124, Buffer.from('ffffffffffffffffffffffff', 'hex')),
      'a size with a sign': patched(124, '-0000000005\0'),
      'a size with garbage': patched(124, '00000000005x'),
      'no size': patched(124, Buffer.alloc(12)),
      'a mode with a digit that is not octal': patched(100, '0000648\0'),
      'a mode with a space in front': patched(100, ' 000644\0'),
      'bytes behind the last field': patched(505, 'x'),
    };
    for (const [name, entry] of Object.entries(cases)) {
      assert.throws(() => read(Buffer.concat([entry, endOfArchive])), { code: 'ARCHIVE_MALFORMED' }, name);
    }
  });

  it('refuses every type but a regular file', () => {
    for (const type of ['1', '2', '3', '4', '5', '6', '7', 'S', 'L', 'K', 'g', 'D', 'M', 'V', 'X', 'Z']) {
      assertMalformed(Buffer.concat([tarEntry({ path: 'a', type }), endOfArchive]), 'ENTRY_REFUSED');
    }
    assertMalformed(Buffer.concat([tarEntry({ path: 'a', link: 'b' }), endOfArchive]), 'ENTRY_REFUSED');
  });

  it('accepts the old type of a file', () => {
    assert.equal(read(Buffer.concat([tarEntry({ path: 'a', type: '\0' }), endOfArchive])).length, 1);
  });

  it('refuses PAX headers that are not exact', () => {
    const file = Buffer.concat([one, endOfArchive]);
    const raw = (text: string): Buffer => paxEntry([], { raw: Buffer.from(text) });
    const cases = {
      'a size that differs': paxEntry([['size', '6']]),
      'a size that is no number': paxEntry([['size', '0x5']]),
      'a negative size': paxEntry([['size', '-5']]),
      'a key twice': paxEntry([
        ['path', 'b'],
        ['path', 'c'],
      ]),
      'a link target': paxEntry([['linkpath', '/etc/passwd']]),
      'an extended attribute': paxEntry([['SCHILY.xattr.user.x', '1']]),
      'a sparse map': paxEntry([['GNU.sparse.major', '1']]),
      'a length one too long': raw('11 path=b\n'),
      'a length one too short': raw('8 path=b\n'),
      'a length with a sign': raw('+10 path=b\n'),
      'a length without end': raw('10'),
      'a record without key': raw('5 =b\n'),
      'a record without value': raw('7 path\n'),
      'a body too long': paxEntry([['path', 'b'.repeat(2001)]]),
      'an empty body': paxEntry([], { raw: Buffer.alloc(0) }),
      'another PAX header behind': Buffer.concat([paxEntry([['path', 'b']]), paxEntry([['path', 'c']])]),
    };
    for (const [name, pax] of Object.entries(cases)) {
      assert.throws(() => read(Buffer.concat([pax, file])), { code: 'ARCHIVE_MALFORMED' }, name);
    }
    assertMalformed(Buffer.concat([one, paxEntry([['path', 'b']]), endOfArchive]));
  });

  it('reads path, size and time from a PAX header', () => {
    const pax = paxEntry([
      ['path', 'from pax'],
      ['size', '5'],
      ['mtime', '0'],
    ]);
    const seen = read(Buffer.concat([pax, one, one, endOfArchive]));
    assert.deepEqual(
      seen.map((file) => file.path),
      ['from pax', 'a'],
    );
  });

  it('gives a visitor’s error to the writer', () => {
    const refusal = new Error('no');
    const reader = createTarReader(
      {
        begin: () => {
          throw refusal;
        },
        data: () => undefined,
        end: () => undefined,
      },
      { maxPaxBytes: 100 },
    );
    assert.throws(() => reader.write(one), refusal);
  });

  it('throws only errors with a code, for any bytes', () => {
    const tar = Buffer.concat([paxEntry([['path', long]]), one, endOfArchive]);
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(tar.length - 1), fc.nat(255)), { maxLength: 6 }), (changes) => {
        const changed = Buffer.from(tar);
        for (const [at, byte] of changes) changed[at] = byte;
        try {
          read(changed);
        } catch (error) {
          assert.match((error as { code: string }).code, /^(ARCHIVE_MALFORMED|ENTRY_REFUSED)$/);
        }
      }),
      { numRuns: 500 },
    );
  });
});
