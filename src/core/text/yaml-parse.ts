// Parses one YAML document under bounds that the yaml package does not have. Its composer is recursive, and at the end of the stack
// V8 may abort the process (compiling a regular expression there is a fatal error), which no catch and no worker thread contains. So
// the number of tokens is limited while they arrive, and the depth before anything is composed. Time is linear in the text; the
// package would compare each key with every other.
import {
  Composer,
  type CST,
  type Document,
  isScalar,
  Lexer,
  type LineCounter,
  type Node,
  Parser,
  visit,
  YAMLParseError,
} from '#yaml';

/** Number of nested collections in a document. */
export const maxYamlDepth = 200;

export interface YamlBounds {
  /** Number of lexical tokens, as words, marks and white space: each takes up to a kilobyte while it is parsed. */
  readonly maxPieces: number;
}

export type YamlResult =
  /** The caller must check its `errors` and `warnings`. */
  | { readonly kind: 'document'; readonly document: Document.Parsed }
  | { readonly kind: 'too-deep' | 'too-much' };

/**
 * Schema core, unique keys, one document; never throws.
 * @param lines receives the positions of the lines of the text
 */
export function parseYaml(text: string, lines: LineCounter, bounds: YamlBounds): YamlResult {
  const composer = new Composer({ schema: 'core', strict: true, uniqueKeys: false, prettyErrors: false });
  const tokens: CST.Token[] = [];
  for (const token of tokensOf(text, lines, bounds)) {
    if (token === undefined) return { kind: 'too-much' };
    if (nestsDeeper(token)) return { kind: 'too-deep' };
    tokens.push(token);
  }
  const [document, second] = composer.compose(tokens, true, text.length);
  if (document === undefined) return { kind: 'too-deep' };
  requirePlainKeys(document);
  if (second !== undefined) {
    const [from, to] = second.range;
    const text = 'only one document may be in a file';
    document.errors.push(new YAMLParseError([from, to], 'MULTIPLE_DOCS', text));
  }
  return { kind: 'document', document };
}

/** @returns the tokens; undefined as the last one if the text has too many pieces */
function* tokensOf(
  text: string,
  lines: LineCounter,
  { maxPieces }: YamlBounds,
): Generator<CST.Token | undefined> {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  let pieces = 0;
  for (const piece of new Lexer().lex(text)) {
    pieces += 1;
    if (pieces > maxPieces) return yield undefined;
    yield* parser.next(piece);
  }
  yield* parser.end();
}

/**
 * Requires that each key is a scalar and unique by its name in the data: `1` and `"1"` have one name. A list or a map as a key has
 * no name, and an alias could repeat one.
 */
function requirePlainKeys(document: Document.Parsed): void {
  visit(document, {
    Map: (_, map) => {
      const names = new Set<string>();
      for (const { key } of map.items) {
        const [from, to] = (key as Node | null)?.range ?? [0, 0];
        if (!isScalar(key)) {
          const text = 'Map keys must be plain values: no list, map or alias';
          if (key !== null) document.errors.push(new YAMLParseError([from, to], 'NON_STRING_KEY', text));
          continue;
        }
        const name = yamlKey(key.value);
        if (names.has(name)) {
          document.errors.push(new YAMLParseError([from, to], 'DUPLICATE_KEY', 'Map keys must be unique'));
        }
        names.add(name);
      }
    },
  });
}

/** @returns the name of a member in the data for a scalar key */
export function yamlKey(value: unknown): string {
  return value === null ? '' : String(value);
}

/** By levels and not by recursion, because it must not exhaust the stack. */
function nestsDeeper(root: CST.Token): boolean {
  let level: readonly CST.Token[] = [root];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > maxYamlDepth) return true;
    level = level.flatMap(childrenOfToken);
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
