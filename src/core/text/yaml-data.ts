// Converts a YAML document to plain data, with time and memory in proportion to its text. The value of an alias is converted once
// and shared. It counts at each use, because readers of the data visit it at each use.
import { type Document, isAlias, isMap, isScalar, isSeq, type Node } from '#yaml';
import { maxYamlDepth, yamlKey } from './yaml-parse.js';

/** Number of values that aliases may add, because a few lines with aliases can expand to a gigabyte. */
const maxAliasedValues = 10_000;

export type YamlData =
  | { readonly kind: 'data'; readonly data: unknown }
  | { readonly kind: 'too-deep' | 'aliases' };

/** @returns plain data of a document without errors; a refusal if its aliases add too many values or its nesting is too deep */
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
  /** Number of values in it including itself, aliases expanded. */
  readonly values: number;
  /** Number of nested levels in it. */
  readonly levels: number;
}

/** An anchor is valid for the aliases after it, up to the next anchor with its name, and not within its own value. */
class Converter {
  readonly #anchors = new Map<string, Value>();
  #aliasedLeft = maxAliasedValues;

  /**
   * @param depth number of enclosing collections
   * @throws Refusal
   */
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
      // As own members, because an untrusted document can have `__proto__` as a key.
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
