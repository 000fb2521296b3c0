// Makes an input from one that reached new code: changes bits, bytes, ranges, numbers, tokens of the format, and parts of a
// second input. Pure except for the random generator in its arguments.
import type { Seeded } from '../../kit/assert/seeded.js';

export const maxInputBytes = 16_384;
const numbers = ['0', '-1', '1', '65536', '4294967296', '9007199254740992', '1e309', '00', '.5', ''];
const bytes = [0x00, 0x01, 0x0a, 0x0d, 0x20, 0x22, 0x25, 0x2e, 0x2f, 0x30, 0x5c, 0x7f, 0x80, 0xc0, 0xff];

interface Change {
  readonly random: Seeded;
  readonly tokens: readonly string[];
  /** A second input, from which parts are copied. */
  readonly other: Buffer;
}

type Step = (input: Buffer, change: Change) => Buffer;

const steps: readonly Step[] = [
  (input, { random }) => withByte(input, random, (byte) => byte ^ (1 << random.int(8))),
  (input, { random }) => withByte(input, random, () => random.int(256)),
  (input, { random }) => withByte(input, random, () => random.pick(bytes)),
  // Removes, repeats or copies a part.
  (input, { random }) => {
    const [from, to] = part(input, random);
    return Buffer.concat([input.subarray(0, from), input.subarray(to)]);
  },
  (input, { random }) => {
    const [from, to] = part(input, random);
    return Buffer.concat([input.subarray(0, to), input.subarray(from)]);
  },
  (input, { random, other }) => {
    const [from, to] = part(other, random);
    return replaced(input, random, other.subarray(from, to));
  },
  (input, { random, tokens }) => inserted(input, random, Buffer.from(random.pick(tokens), 'latin1')),
  (input, { random, tokens }) => replaced(input, random, Buffer.from(random.pick(tokens), 'latin1')),
  (input, { random }) => inserted(input, random, Buffer.alloc(1 + random.int(700), random.pick(bytes))),
  (input, { random }) => input.subarray(0, random.int(input.length + 1)),
  withNumber,
];

/** @returns an input of at most maxInputBytes, by one step or several */
export function changeInput(input: Buffer, change: Change): Buffer {
  const { random } = change;
  let changed = input;
  for (let left = random.once(2) ? 1 : 1 + random.int(6); left > 0; left -= 1) {
    changed = random.pick(steps)(changed, change);
  }
  return Buffer.from(changed.subarray(0, maxInputBytes));
}

function withByte(input: Buffer, random: Seeded, change: (byte: number) => number): Buffer {
  const copy = Buffer.from(input);
  if (copy.length === 0) return copy;
  const at = random.int(copy.length);
  copy[at] = change(copy[at] ?? 0);
  return copy;
}

/** Short lengths are as frequent as long ones. */
function part(input: Buffer, random: Seeded): [number, number] {
  const from = random.int(input.length + 1);
  const length = random.int(1 + (random.once(2) ? 8 : input.length));
  return [from, Math.min(input.length, from + length)];
}

function inserted(input: Buffer, random: Seeded, added: Buffer): Buffer {
  const at = random.int(input.length + 1);
  return Buffer.concat([input.subarray(0, at), added, input.subarray(at)]);
}

function replaced(input: Buffer, random: Seeded, by: Buffer): Buffer {
  const [from, to] = part(input, random);
  return Buffer.concat([input.subarray(0, from), by, input.subarray(to)]);
}

function withNumber(input: Buffer, { random }: Change): Buffer {
  const text = input.toString('latin1');
  const found = [...text.matchAll(/\d+/g)];
  if (found.length === 0) return input;
  const { 0: digits, index } = random.pick(found);
  const number = random.once(2) ? random.pick(numbers) : `${Number(digits) + random.int(5) - 2}`;
  return Buffer.from(text.slice(0, index) + number + text.slice(index + digits.length), 'latin1');
}
