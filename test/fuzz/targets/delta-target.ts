// Target for a decompressed delta from one release to the next.
import assert from 'node:assert/strict';
import { encodeInstruction, encodeNumber, minCopyBytes } from '../../../src/core/delta/delta-format.js';
import type { Seeded } from '../../kit/assert/seeded.js';
import { type Applied, applyDelta, deltaOf, releaseOf } from '../../kit/delta/delta-kit.js';
import { acceptedOr, type Target } from '../engine/target.js';

const line = 'a line of a list, which is longer than a copy has to be\n';
const base = releaseOf({ a: line.repeat(4), 'b/c': 'small', gone: line.repeat(2) });
const next = releaseOf({ a: `${line}new\n${line.repeat(3)}`, 'b/c': 'small', d: '', e: line.slice(0, 40) });

/** @param sizes of the pieces in bytes; one piece by default */
export type DeltaRead = (delta: Buffer, sizes?: number[]) => Applied;

export const readDelta: DeltaRead = (delta, sizes) =>
  applyDelta(base, next, sizes === undefined ? { delta } : { delta, sizes });

/** @param read reader under test; a test passes a broken one */
export function deltaTarget(read: DeltaRead = readDelta): Target {
  const sizes = new Map(next.manifest.files.map(({ path, sizeBytes }) => [path, sizeBytes]));
  return {
    name: 'delta',
    seeds: [deltaOf(base, next), madeDelta([encodeNumber(0), insert(`${line}new\n${line.repeat(3)}`)])],
    tokens: ['writ-delta 1\n', '\x00', '\x80', '\x80\x00', '\x7f', '\xff\xff\xff\xff\xff\xff\xff', line],
    make: (random) => madeDelta(madeFiles(random)),
    check: (input) => {
      const codes = ['DELTA_MALFORMED'];
      const whole = acceptedOr(codes, () => read(input));
      for (const some of [[1], [2, 5, 64]]) {
        assert.deepEqual(withoutPieces(acceptedOr(codes, () => read(input, some))), withoutPieces(whole));
      }
      if (!('value' in whole)) return;
      // Whatever the delta contains, the result must be exactly the files of the signed manifest with their sizes.
      assert.deepEqual(whole.value.manifest, next.manifest);
      assert.deepEqual(Object.keys(whole.value.made), ['a', 'd', 'e']);
      for (const [path, made] of Object.entries(whole.value.made)) {
        assert.equal(made.length, sizes.get(path));
      }
    },
  };
}

/** The split of an insert does not matter. */
function withoutPieces(read: { value: Applied } | { code: string }) {
  return 'value' in read ? read.value.made : read;
}

const insert = (text: string): Buffer => Buffer.concat([encodeNumber(text.length * 2), Buffer.from(text)]);

function madeDelta(parts: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from('writ-delta 1\n'), insert(next.manifestBytes.toString()), ...parts]);
}

/** Instructions that make each file correctly; one of eight times a random instruction. */
function madeFiles(random: Seeded): Buffer[] {
  return ['a', 'd', 'e'].flatMap((path) => {
    const from = random.int(base.manifest.files.length + 1);
    const baseBytes = base.manifest.files[from - 1]?.sizeBytes ?? 0;
    const size = next.manifest.files.find((file) => file.path === path)?.sizeBytes ?? 0;
    return [encodeNumber(from), ...madeFile(random, { size, baseBytes })];
  });
}

function madeFile(random: Seeded, { size, baseBytes }: { size: number; baseBytes: number }): Buffer[] {
  const parts: Buffer[] = [];
  let [left, copyEnd, afterInsert] = [size, 0, false];
  while (left > 0) {
    if (random.once(8)) parts.push(encodeNumber(random.pick([0, 1, 2, 65, random.int(500)])));
    const most = Math.min(left, baseBytes);
    if (most >= minCopyBytes && (afterInsert || random.once(2))) {
      const length = minCopyBytes + random.int(most - minCopyBytes + 1);
      const offset = random.int(baseBytes - length + 1);
      parts.push(encodeInstruction({ kind: 'copy', offset, length }, copyEnd));
      copyEnd = offset + length;
      afterInsert = false;
      left -= length;
    } else {
      const length = afterInsert || most < minCopyBytes ? left : 1 + random.int(left);
      parts.push(insert('x'.repeat(length)));
      afterInsert = true;
      left -= length;
    }
  }
  return parts;
}
