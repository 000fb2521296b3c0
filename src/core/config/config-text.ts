// The text of a configuration file: YAML to data, and places in the data to lines of the file. Owns the bounds
// on YAML (size, aliases, one document, no tags, unique keys). What the data mean is config-schema's.
import { type Document, LineCounter } from '#yaml';
import { yamlData } from '../text/yaml-data.js';
import { parseYaml } from '../text/yaml-parse.js';
import { yamlOffset } from '../text/yaml-places.js';
import { type ConfigMistake, pointerOf } from './config-errors.js';
import type { ConfigCode, Finding } from './findings.js';

export const maxConfigBytes = 1_000_000;
/** A line of a label has eight: far more than any host has to say, in a part of the memory that it has. */
const bounds = { maxPieces: 200_000 };
const tooDeep = 'the file is nested too deeply';
const tooMuch = `the file says too much: more than ${bounds.maxPieces} words and marks`;

export type ConfigText =
  | { readonly ok: true; readonly data: unknown; readonly locate: (finding: Finding) => ConfigMistake }
  | { readonly ok: false; readonly mistakes: readonly ConfigMistake[] };

/** @param text the file, at most 1 MB. @returns its data with a way back to its lines, or what is no YAML */
export function readConfigText(text: string): ConfigText {
  const bytes = Buffer.byteLength(text);
  if (bytes > maxConfigBytes)
    return broken(`the file has ${bytes} bytes; at most ${maxConfigBytes} are read`);
  const lines = new LineCounter();
  const parsed = parseYaml(text, lines, bounds);
  if (parsed.kind === 'document') return fromDocument(parsed.document, lines);
  return broken(parsed.kind === 'too-deep' ? tooDeep : tooMuch);
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
  const value = yamlData(document);
  if (value.kind !== 'data') {
    return broken(value.kind === 'aliases' ? 'the file has too many or unknown aliases' : tooDeep);
  }
  return { ok: true, data: value.data, locate: (finding) => locate(finding, document, lines) };
}

function broken(text: string): ConfigText {
  return { ok: false, mistakes: [mistake('CONFIG_SYNTAX', { line: 1, column: 1, pointer: '', text })] };
}

function mistake(code: ConfigCode, place: Omit<ConfigMistake, 'code'>): ConfigMistake {
  return { code, ...place };
}

function locate(finding: Finding, document: Document.Parsed, lines: LineCounter): ConfigMistake {
  const { line, col } = lines.linePos(yamlOffset(finding.path, finding.at, document));
  const place = { line: Math.max(line, 1), column: Math.max(col, 1), pointer: pointerOf(finding.path) };
  return mistake(finding.code ?? 'CONFIG_INVALID', { ...place, text: finding.text });
}
