// Finds the position in the text of a YAML document for a path in its data. A map is indexed at its first use, because a file may
// have as many errors as keys. Pure.
import { type Document, isAlias, isMap, isScalar, isSeq, type Node, type Pair, type YAMLMap } from '#yaml';
import { yamlKey } from './yaml-parse.js';

/** Keys and indices from the root of the document. */
export type YamlPath = readonly (string | number)[];

/** @returns the offset of the value or of its key; if there is none, of the nearest enclosing value */
export function yamlOffset(path: YamlPath, what: 'key' | 'value', document: Document.Parsed): number {
  let node: Node | null | undefined = document.contents;
  let offset = node?.range?.[0] ?? 0;
  for (const [depth, part] of path.entries()) {
    const step = stepInto(isAlias(node) ? node.resolve(document) : node, part);
    if (step === undefined) return offset;
    const last = depth === path.length - 1;
    const place = last && what === 'key' ? step.key : (step.value ?? step.key);
    offset = place?.range?.[0] ?? offset;
    node = step.value;
  }
  return offset;
}

type Step = Readonly<Record<'key' | 'value', Node | undefined>>;

function stepInto(node: Node | null | undefined, part: string | number): Step | undefined {
  if (isSeq<Node>(node)) {
    const value = node.items[Number(part)];
    return value === undefined ? undefined : { key: value, value };
  }
  if (!isMap<Node, Node | null>(node)) return undefined;
  const pair = indexOf(node).get(String(part));
  return pair === undefined ? undefined : { key: pair.key, value: pair.value ?? undefined };
}

type Index = ReadonlyMap<string, Pair<Node, Node | null>>;
const indices = new WeakMap<object, Index>();

function indexOf(map: YAMLMap<Node, Node | null>): Index {
  const known = indices.get(map);
  if (known !== undefined) return known;
  const pairs = map.items.flatMap((pair) =>
    isScalar(pair.key) ? [[yamlKey(pair.key.value), pair] as const] : [],
  );
  const index = new Map(pairs);
  indices.set(map, index);
  return index;
}
