// Hostile deltas: each number is checked against signed sizes, and the visitor gets no instruction that is impossible.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { encodeNumber } from '../../../../src/core/delta/delta-format.js';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { applyDelta, deltaOf, readingOf, releaseOf } from '../../../kit/delta/delta-kit.js';

const line = 'a line that is longer than thirty-two bytes, as lines are\n';
const base = releaseOf({ a: line.repeat(3), b: 'small', gone: line });
const next = releaseOf({ a: `${line.repeat(2)}new\n${line}`, b: 'small', c: 'added', empty: '' });
const delta = deltaOf(base, next);
const magic = Buffer.from('writ-delta 1\n');

const number = encodeNumber;
const insert = (bytes: string | Buffer): Buffer =>
  Buffer.concat([number(Buffer.byteLength(bytes) * 2), Buffer.from(bytes)]);
const copy = (step: number, length: number): Buffer =>
  Buffer.concat([number(length * 2 + 1), number(step < 0 ? -step * 2 - 1 : step * 2)]);

/** A delta for `a` and `c`, with a right manifest and these bytes behind it. */
function behindManifest(...parts: Buffer[]): Buffer {
  return Buffer.concat([magic, insert(next.manifestBytes), ...parts]);
}

const rightA = [number(1), copy(0, line.length * 2), insert('new\n'), copy(0, line.length)];
const rest = [number(0), insert('added'), number(0)];

function assertMalformed(bytes: Buffer, message: RegExp, changes = {}): void {
  assert.throws(() => applyDelta(base, next, { delta: bytes, ...changes }), {
    code: 'DELTA_MALFORMED',
    kind: 'failed',
    message,
  });
}

describe('createDeltaReader', () => {
  it('calls the visitor for each file with new content, in the order of the manifest', () => {
    const { events, made } = applyDelta(base, next, { delta: behindManifest(...rightA, ...rest) });
    assert.deepEqual(events, [
      'a < a',
      `copy 0+${line.length * 2}`,
      'insert 4',
      `copy ${line.length * 2}+${line.length}`,
      'close',
      'c < nothing',
      'insert 5',
      'close',
      'empty < nothing',
      'close',
    ]);
    assert.equal(made['a'], `${line.repeat(2)}new\n${line}`);
  });

  it('reads the same in pieces of any size', () => {
    const whole = applyDelta(base, next, { delta }).made;
    for (const sizes of [[1], [2, 3], [7], [100, 1]]) {
      assert.deepEqual(applyDelta(base, next, { delta, sizes }).made, whole);
    }
  });

  it('accepts any row as a base, and copies from earlier offsets in it', () => {
    const parts = [number(3), copy(0, line.length), copy(-line.length, line.length), insert('new\n')];
    const { events } = applyDelta(base, next, {
      delta: behindManifest(...parts, copy(-line.length, line.length), ...rest),
    });
    assert.deepEqual(events.slice(0, 3), ['a < gone', `copy 0+${line.length}`, `copy 0+${line.length}`]);
  });

  it('rejects a delta that is cut off at any byte', () => {
    for (let end = 0; end < delta.length; end += 1) assertMalformed(delta.subarray(0, end), /ends too early/);
  });

  it('produces the signed manifest or an error from a delta with any byte changed, and never reads beyond the base', () => {
    for (let at = 0; at < delta.length; at += 1) {
      for (const mask of [1, 2, 0x40, 0x80, 0xff]) {
        const changed = Buffer.from(delta);
        changed[at] = (changed[at] ?? 0) ^ mask;
        try {
          const { manifest } = applyDelta(base, next, { delta: changed });
          // Bytes of an insert, or a copy from another offset: only the digest of the produced file shows the change.
          assert.deepEqual(manifest, next.manifest);
        } catch (error) {
          assert.equal((error as { code?: string }).code, 'DELTA_MALFORMED', String(error));
        }
      }
    }
  });

  it('rejects another format, and another version', () => {
    assertMalformed(Buffer.from('writ-delta 2\n'), /version/);
    assertMalformed(Buffer.from('{'), /version/);
  });

  it('decodes nothing after a manifest that is not the signed one', () => {
    const other = Buffer.from(next.manifestBytes);
    other[other.length - 2] = 0x32;
    // An invalid number follows.
    assertMalformed(Buffer.concat([magic, insert(other), Buffer.from([0x80, 0x00])]), /not the signed one/);
  });

  it('checks the signed manifest as that of an archive', () => {
    const limits = { ...defaultArchiveLimits, maxEntries: 3 };
    assert.throws(() => applyDelta(base, next, { delta, limits }), { code: 'ARCHIVE_LIMIT' });
    const odd = Buffer.from('{"files":[]}');
    const digest = `sha256:${createHash('sha256').update(odd).digest('hex')}`;
    const manifest = { digest, length: odd.length } as ReturnType<typeof readingOf>['manifest'];
    const bytes = Buffer.concat([magic, insert(odd)]);
    assert.throws(() => applyDelta(base, next, { delta: bytes, manifest }), { code: 'MANIFEST_MALFORMED' });
  });

  it('rejects numbers that are not in their shortest form, and those that are too large', () => {
    assertMalformed(behindManifest(Buffer.from([0x81, 0x00])), /shortest form/);
    assertMalformed(behindManifest(Buffer.alloc(8, 0xff)), /too long/);
    assertMalformed(behindManifest(Buffer.from([...Buffer.alloc(7, 0xff), 0x7f])), /too large/);
  });

  it('rejects instructions that produce nothing, or more than the file', () => {
    assertMalformed(behindManifest(number(1), number(0)), /produces nothing/);
    assertMalformed(behindManifest(number(1), number(1)), /produces nothing/);
    const size = next.manifest.files[0]?.sizeBytes ?? 0;
    assertMalformed(behindManifest(number(1), number((size + 1) * 2)), /too long/);
    assertMalformed(behindManifest(number(1), copy(0, 2 ** 40)), /too long/);
    assertMalformed(
      behindManifest(...rightA.slice(0, 2), number((size - line.length * 2 + 1) * 2)),
      /too long/,
    );
  });

  it('rejects instructions with much work for few bytes: short copies, and consecutive inserts', () => {
    assertMalformed(behindManifest(number(1), copy(0, 31)), /too short/);
    assertMalformed(behindManifest(number(1), insert('x'), insert('y')), /two inserts/);
    applyDelta(base, next, {
      delta: behindManifest(
        number(1),
        copy(0, 32),
        copy(0, 2 * line.length - 32),
        ...rightA.slice(2),
        ...rest,
      ),
    });
  });

  it('rejects copies before and after the base, and any copy without a base', () => {
    assertMalformed(behindManifest(number(1), copy(-1, 40)), /outside/);
    assertMalformed(behindManifest(number(1), copy(line.length * 3 - 31, 32)), /outside/);
    assertMalformed(behindManifest(number(1), copy(2 ** 50, 32)), /outside/);
    assertMalformed(behindManifest(number(0), copy(0, 40)), /outside/);
    assertMalformed(Buffer.concat([magic, copy(base.manifestBytes.length - 31, 32)]), /outside/);
  });

  it('rejects a base that is not in the manifest', () => {
    assertMalformed(behindManifest(number(4)), /no base/);
    assertMalformed(behindManifest(number(2 ** 50)), /no base/);
  });

  it('rejects bytes after its end', () => {
    assertMalformed(Buffer.concat([delta, Buffer.from([0])]), /after its end/);
  });

  it('limits the decompressed size by the signed length', () => {
    const bomb = Buffer.alloc(1_000_001);
    const huge = releaseOf({ a: bomb });
    const packed = deltaOf(base, huge);
    const read = (deltaBytes: number) => applyDelta(base, huge, { delta: packed, deltaBytes });
    assert.throws(() => read(5000), { code: 'DELTA_MALFORMED', message: /too much for its length/ });
    assert.equal(read(Math.ceil(packed.length / 200)).made['a']?.length, bomb.length);
    assert.throws(() => read(Math.ceil(packed.length / 200) - 1), { code: 'DELTA_MALFORMED' });
  });

  it('allocates nothing for a signed manifest that is over the limit of an archive', () => {
    const { maxManifestBytes } = defaultArchiveLimits;
    const { digest } = readingOf(base, next).manifest;
    for (const length of [maxManifestBytes + 1, Number.MAX_SAFE_INTEGER]) {
      const manifest = { digest, length };
      assert.throws(() => applyDelta(base, next, { delta, manifest }), { code: 'ARCHIVE_LIMIT' });
    }
  });

  it('allocates nothing for a number in the delta', () => {
    const before = process.memoryUsage().arrayBuffers;
    assertMalformed(behindManifest(number(1), number(2 ** 51)), /too long/);
    assert.ok(process.memoryUsage().arrayBuffers - before < 10_000_000);
  });
});
