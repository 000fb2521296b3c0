// The text of a configuration file: YAML to data, and places in the data to lines of the file. Owns the bounds
// on YAML (size, aliases, one document, no tags, unique keys). What the data mean is config-schema's.
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import type { ConfigCode, ConfigMistake, ConfigPath, Finding } from './config-errors.js';
import { pointerOf } from './config-errors.js';

export const maxConfigBytes = 1_000_000;
const maxAliases = 100;

export type ConfigText =
  | { readonly ok: true; readonly data: unknown; readonly locate: (finding: Finding) => ConfigMistake }
  | { readonly ok: false; readonly mistakes: readonly ConfigMistake[] };

/** @param text the file, at most 1 MB. @returns its data with a way back to its lines, or what is no YAML */
export function readConfigText(text: string): ConfigText {
  const bytes = Buffer.byteLength(text);
  if (bytes > maxConfigBytes)
    return broken(`the file has ${bytes} bytes; at most ${maxConfigBytes} are read`);
  const lines = new LineCounter();
  try {
    return fromDocument(parse(text, lines), lines);
  } catch (error) {
    // Nesting beyond the stack is a RangeError of the parser, too many aliases a ReferenceError of toJS.
    if (error instanceof RangeError) return broken('the file is nested too deeply');
    if (error instanceof ReferenceError) return broken(`the file has too many or unknown aliases`);
    throw error;
  }
}

function parse(text: string, lineCounter: LineCounter): Document.Parsed {
  return parseDocument(text, {
    lineCounter,
    schema: 'core',
    strict: true,
    uniqueKeys: true,
    prettyErrors: false,
    // 'silent' would also keep quiet about a second document.
    logLevel: 'error',
  });
}

function fromDocument(document: Document.Parsed, lines: LineCounter): ConfigText {
  // A warning is an unknown tag or directive: YAML that this file has no use for.
  const problems = [...document.errors, ...document.warnings];
  if (problems.length > 0) {
    const mistakes = problems.slice(0, 100).map(({ message, pos }) => {
      const { line, col } = lines.linePos(pos[0]);
      return mistake('CONFIG_SYNTAX', { line, column: Math.max(col, 1), pointer: '', text: message });
    });
    return { ok: false, mistakes };
  }
  const data: unknown = document.toJS({ maxAliasCount: maxAliases });
  return { ok: true, data, locate: (finding) => locate(finding, document, lines) };
}

function broken(text: string): ConfigText {
  return { ok: false, mistakes: [mistake('CONFIG_SYNTAX', { line: 1, column: 1, pointer: '', text })] };
}

function mistake(code: ConfigCode, place: Omit<ConfigMistake, 'code'>): ConfigMistake {
  return { code, ...place };
}

function locate(finding: Finding, document: Document.Parsed, lines: LineCounter): ConfigMistake {
  const { line, col } = lines.linePos(offsetOf(finding.path, finding.at, document));
  const place = { line: Math.max(line, 1), column: Math.max(col, 1), pointer: pointerOf(finding.path) };
  return mistake(finding.code ?? 'CONFIG_INVALID', { ...place, text: finding.text });
}

/** The offset of the value, or of its key; of the nearest thing around it where there is none. */
function offsetOf(path: ConfigPath, what: 'key' | 'value', document: Document.Parsed): number {
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

interface Step {
  readonly key: Node | undefined;
  readonly value: Node | undefined;
}

function stepInto(node: Node | null | undefined, part: string | number): Step | undefined {
  if (isSeq<Node>(node)) {
    const value = node.items[Number(part)];
    return value === undefined ? undefined : { key: value, value };
  }
  if (!isMap<Node, Node | null>(node)) return undefined;
  const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
  return pair === undefined ? undefined : { key: pair.key, value: pair.value ?? undefined };
}
