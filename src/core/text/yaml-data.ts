// From a YAML document to plain data, in time and memory that its text is in proportion to: what an alias stands for is
// made once and used again, and counted as often as it is used, since whoever reads the data meets it as often.
import { type Document, isAlias, isMap, isScalar, isSeq, type Node } from '#yaml';
import { maxYamlDepth, yamlKey } from './yaml-parse.js';

/** Values that aliases may add: a few lines of them make a gigabyte. */
const maxAliasedValues = 10_000;

export type YamlData =
  | { readonly kind: 'data'; readonly data: unknown }
  | { readonly kind: 'too-deep' | 'aliases' };

/** @returns plain data of a document without errors; no aliases that multiply, and none that nest without end */
export function yamlData(document: Document.Parsed): YamlData {
  try {
    return { kind: 'data', data: new Converter().value(document.contents, 0).data };
  } catch (error) {
    if (error instanceof Refusal) return { kind: error.kind };
    throw error;
  }
}

class Refusal extends Error {
  readonly kind: 'too-deep' | 'aliases';
  constructor(kind: Refusal['kind']) {
    super(kind);
    this.kind = kind;
  }
}

interface Value {
  readonly data: unknown;
  /** Itself and all in it, aliases followed. */
  readonly values: number;
  /** Levels of collections in it. */
  readonly levels: number;
}

/** An anchor belongs to the aliases behind it, up to the next of its name; in itself it is not there yet. */
class Converter {
  readonly #anchors = new Map<string, Value>();
  #aliasedLeft = maxAliasedValues;

  /** @param depth of collections around it. @throws Refusal */
  value(node: Node | null | undefined, depth: number): Value {
    if (isAlias(node)) return this.#alias(node.source, depth);
    const value = this.#own(node, depth);
    const { anchor } = (node ?? {}) as { readonly anchor?: string | undefined };
    if (anchor !== undefined && anchor !== '') this.#anchors.set(anchor, value);
    return value;
  }

  #alias(name: string, depth: number): Value {
    const value = this.#anchors.get(name);
    if (value === undefined) throw new Refusal('aliases');
    this.#aliasedLeft -= value.values;
    if (this.#aliasedLeft < 0) throw new Refusal('aliases');
    if (depth + value.levels > maxYamlDepth) throw new Refusal('too-deep');
    return value;
  }

  #own(node: Node | null | undefined, depth: number): Value {
    if (isSeq<Node>(node)) {
      const items = node.items.map((item) => this.value(item, depth + 1));
      return collection(
        items.map(({ data }) => data),
        items,
      );
    }
    if (isMap<Node, Node | null>(node)) {
      const members = node.items.map(({ key, value }) => {
        const name = this.#name(key, depth);
        return [name, this.value(value, depth + 1)] as const;
      });
      // As own members, whatever their names: no `__proto__` of somebody else.
      const data = Object.fromEntries(members.map(([name, { data }]) => [name, data]));
      return collection(
        data,
        members.map(([, value]) => value),
      );
    }
    return { data: isScalar(node) ? node.value : null, values: 1, levels: 0 };
  }

  #name(key: Node | null, depth: number): string {
    return yamlKey(this.value(key, depth + 1).data);
  }
}

function collection(data: unknown, parts: readonly Value[]): Value {
  const values = parts.reduce((sum, part) => sum + part.values, 1);
  const levels = parts.reduce((most, part) => Math.max(most, part.levels), 0);
  return { data, values, levels: levels + 1 };
}
