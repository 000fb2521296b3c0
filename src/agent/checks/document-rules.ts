// Parses a policy file in YAML or JSON: to data, or to all mistakes with line and column. Pure. Restricts both languages: one
// document, unique keys, no custom tags, few aliases, limited depth. A schema judges the data.
import { type Document, LineCounter } from '#yaml';
import { scanJson } from '../../core/text/json-scan.js';
import { yamlData } from '../../core/text/yaml-data.js';
import { parseYaml } from '../../core/text/yaml-parse.js';
import { yamlOffset } from '../../core/text/yaml-places.js';

export type DocumentFormat = 'json' | 'yaml';

/** Line and column, both from 1. */
export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

export interface DocumentProblem extends TextPosition {
  readonly text: string;
}

export type PolicyDocument =
  | {
      readonly kind: 'data';
      readonly data: unknown;
      /** @returns the positions of JSON pointers, in their order; that of the nearest parent for an unknown pointer */
      readonly locate: (pointers: readonly string[]) => readonly TextPosition[];
    }
  | { readonly kind: 'mistakes'; readonly problems: readonly DocumentProblem[] };

const maxDepth = 200;
/** More tokens than a check can parse in its time, whatever its memory is. */
const maxPieces = 5_000_000;
const maxContainers = 1_000_000;
const tooDeep = 'it is nested too deeply';

/** @returns `json` for names that end in `.json`, `yaml` for all others */
export function formatOf(path: string): DocumentFormat {
  return path.endsWith('.json') ? 'json' : 'yaml';
}

/** Never throws because of the content. @param bytes the whole file */
export function readPolicyDocument(
  bytes: Uint8Array,
  format: DocumentFormat,
  maxProblems: number,
): PolicyDocument {
  const text = decode(bytes);
  if (text === undefined) return singleMistake('it is not UTF-8');
  return format === 'json' ? readJson(text, maxProblems) : readYaml(text, maxProblems);
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function singleMistake(text: string): PolicyDocument {
  return { kind: 'mistakes', problems: [{ line: 1, column: 1, text }] };
}

function readJson(text: string, maxProblems: number): PolicyDocument {
  const { problems } = scanJson(text, { maxDepth, maxContainers, maxProblems });
  if (problems.length > 0) {
    const placed = problems.map((problem) => ({ ...positionAt(text, problem.offset), text: problem.text }));
    return { kind: 'mistakes', problems: placed };
  }
  const locate = (pointers: readonly string[]): TextPosition[] => {
    const { offsets } = scanJson(text, { maxDepth, maxContainers, maxProblems, wanted: new Set(pointers) });
    return pointers.map((pointer) => positionAt(text, offsets.get(pointer) ?? 0));
  };
  return { kind: 'data', data: JSON.parse(text), locate };
}

function positionAt(text: string, offset: number): TextPosition {
  const before = text.slice(0, offset);
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') };
}

function readYaml(text: string, maxProblems: number): PolicyDocument {
  const lines = new LineCounter();
  const parsed = parseYaml(text, lines, { maxPieces });
  if (parsed.kind === 'document') return fromYaml(parsed.document, lines, maxProblems);
  return singleMistake(
    parsed.kind === 'too-deep' ? tooDeep : `it has more than ${maxPieces} words and marks`,
  );
}

function fromYaml(document: Document.Parsed, lines: LineCounter, maxProblems: number): PolicyDocument {
  const place = (offset: number): TextPosition => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  // A warning is an unknown tag or directive, which another parser may read as different data.
  const problems = [...document.errors, ...document.warnings].slice(0, maxProblems);
  if (problems.length > 0) {
    const placed = problems.map(({ message, pos }) => ({ ...place(pos[0]), text: message }));
    return { kind: 'mistakes', problems: placed };
  }
  const value = yamlData(document);
  if (value.kind !== 'data') {
    return singleMistake(value.kind === 'aliases' ? 'it has too many or unknown aliases' : tooDeep);
  }
  return {
    kind: 'data',
    data: value.data,
    locate: (pointers) => pointers.map((pointer) => place(yamlOffset(partsOf(pointer), 'value', document))),
  };
}

function partsOf(pointer: string): string[] {
  if (pointer === '') return [];
  const parts = pointer.slice(1).split('/');
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}
