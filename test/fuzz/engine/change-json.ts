// Changes JSON by its structure: removes, repeats, moves or replaces a member. The result is JSON, so that it passes the
// parser and reaches the checks of its members. Pure except for the random generator in its arguments.
import type { Seeded } from '../../kit/assert/seeded.js';

const values = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  2 ** 53,
  1,
  '',
  '\u0000',
  '*',
  '..',
  'x'.repeat(300),
  [],
  {},
  [[]],
  [''],
  { a: 1 },
];

/** @param input JSON, or lines of JSON; other inputs are returned unchanged */
export function changeJson(input: Buffer, random: Seeded): Buffer {
  const lines = input.toString('utf8').split('\n');
  const at = random.int(lines.length);
  try {
    const value = JSON.parse(lines[at] ?? '') as unknown;
    const changed = lines.with(at, JSON.stringify(changedValue(value, random)));
    return Buffer.from(changed.join('\n'));
  } catch {
    return input;
  }
}

function changedValue(value: unknown, random: Seeded): unknown {
  const places = placesIn(value);
  if (places.length === 0) return random.pick(values);
  const { parent, key } = random.pick(places);
  const source = random.pick(places);
  const other = random.once(2) ? random.pick(values) : structuredClone(source.parent[source.key]);
  if (Array.isArray(parent) && random.once(2)) parent.splice(Number(key), random.int(2), other);
  else random.pick(memberChanges)(parent, key, other, random.pick(places).key);
  return value;
}

type MemberChange = (parent: Place['parent'], key: string, other: unknown, otherKey: string) => void;

const memberChanges: readonly MemberChange[] = [
  (parent, key) => {
    delete parent[key];
  },
  (parent, _, other, otherKey) => {
    parent[otherKey] = other;
  },
  (parent, key, other) => {
    parent[key] = other;
  },
];

interface Place {
  readonly parent: Record<string, unknown>;
  readonly key: string;
}

function placesIn(value: unknown): Place[] {
  if (typeof value !== 'object' || value === null) return [];
  const parent = value as Record<string, unknown>;
  return Object.keys(parent).flatMap((key) => [{ parent, key }, ...placesIn(parent[key])]);
}
