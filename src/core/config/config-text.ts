// Parses the text of a configuration file from YAML to data, and maps paths of the data to lines of the file. Owns the bounds
// of YAML: size, aliases, one document, no tags, unique keys. config-schema validates the data.
import { type Document, LineCounter } from '#yaml';
import { yamlData } from '../text/yaml-data.js';
import { parseYaml } from '../text/yaml-parse.js';
import { yamlOffset } from '../text/yaml-places.js';
import { type ConfigMistake, pointerOf } from './config-errors.js';
import type { ConfigCode, Finding } from './findings.js';

export const maxConfigBytes = 1_000_000;
/** A line with a label has eight pieces. The limit is far above any real file, and bounds the memory of the parser. */
const bounds = { maxPieces: 200_000 };
const tooDeepText = 'the file is nested too deeply';
const tooComplex = `the file has too much content: more than ${bounds.maxPieces} words and marks`;

export type ConfigText =
  | { readonly ok: true; readonly data: unknown; readonly locate: (finding: Finding) => ConfigMistake }
  | { readonly ok: false; readonly mistakes: readonly ConfigMistake[] };

/** @param text the file, at most 1 MB. @returns the data with a function to locate findings, or the mistakes of syntax */
export function readConfigText(text: string): ConfigText {
  const bytes = Buffer.byteLength(text);
  if (bytes > maxConfigBytes)
    return syntaxMistake(`the file has ${bytes} bytes; at most ${maxConfigBytes} are read`);
  const lines = new LineCounter();
  const parsed = parseYaml(text, lines, bounds);
  if (parsed.kind === 'document') return fromDocument(parsed.document, lines);
  return syntaxMistake(parsed.kind === 'too-deep' ? tooDeepText : tooComplex);
}

function fromDocument(document: Document.Parsed, lines: LineCounter): ConfigText {
  // YAML warnings are unknown tags or directives, which a configuration must not have.
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
    return syntaxMistake(value.kind === 'aliases' ? 'the file has too many or unknown aliases' : tooDeepText);
  }
  return { ok: true, data: value.data, locate: (finding) => locate(finding, document, lines) };
}

function syntaxMistake(text: string): ConfigText {
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
