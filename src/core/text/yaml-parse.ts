// Parses one YAML document under bounds that the yaml package has not: its composer calls itself once a level,
// and at the end of the stack V8 may end the whole process (a regular expression that is compiled there is a
// fatal error), which no catch and no worker thread contains. So depth is measured before anything is composed.
import { Composer, type CST, type Document, type LineCounter, Parser, YAMLParseError } from 'yaml';

/** Levels of collections in a document. */
const maxYamlDepth = 200;
/** An alias repeats what it stands for: a few lines of them make a gigabyte. */
const maxAliases = 100;

export type YamlResult =
  /** Its `errors` and `warnings` are the caller's to judge. */
  { readonly kind: 'document'; readonly document: Document.Parsed } | { readonly kind: 'too-deep' };

/** @param lines learns where the lines of the text begin. Schema core, unique keys, one document; never throws. */
export function parseYaml(text: string, lines: LineCounter): YamlResult {
  const composer = new Composer({ schema: 'core', strict: true, uniqueKeys: true, prettyErrors: false });
  const tokens: CST.Token[] = [];
  for (const token of new Parser(lines.addNewLine).parse(text)) {
    if (nestsDeeper<CST.Token>(token, childrenOfToken)) return { kind: 'too-deep' };
    tokens.push(token);
  }
  const [document, second] = composer.compose(tokens, true, text.length);
  if (document === undefined) return { kind: 'too-deep' };
  if (second !== undefined) {
    const [from, to] = second.range;
    const text = 'only one document may be in a file';
    document.errors.push(new YAMLParseError([from, to], 'MULTIPLE_DOCS', text));
  }
  return { kind: 'document', document };
}

export type YamlData =
  | { readonly kind: 'data'; readonly data: unknown }
  | { readonly kind: 'too-deep' | 'aliases' };

/** @returns plain data of a document without errors; no aliases that multiply, and none that nest without end */
export function yamlData(document: Document.Parsed): YamlData {
  try {
    const data: unknown = document.toJS({ maxAliasCount: maxAliases });
    return nestsDeeper(data, childrenOfData) ? { kind: 'too-deep' } : { kind: 'data', data };
  } catch (error) {
    if (error instanceof ReferenceError) return { kind: 'aliases' };
    throw error;
  }
}

/** Level by level with a list of its own: the stack is what must not be used here. */
function nestsDeeper<Node>(root: Node, childrenOf: (node: Node) => readonly Node[]): boolean {
  let level: readonly Node[] = [root];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > maxYamlDepth) return true;
    level = level.flatMap(childrenOf);
  }
  return false;
}

function childrenOfToken(token: CST.Token): CST.Token[] {
  switch (token.type) {
    case 'document':
      return token.value === undefined ? [] : [token.value];
    case 'block-map':
    case 'block-seq':
    case 'flow-collection':
      return token.items.flatMap(({ key, value }) => [key, value].filter((one) => one != null));
    default:
      return [];
  }
}

function childrenOfData(data: unknown): unknown[] {
  if (typeof data !== 'object' || data === null) return [];
  return Object.values(data).filter((value) => typeof value === 'object' && value !== null);
}
