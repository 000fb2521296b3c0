// What the program says, found in its sources: string literals and templates that read as sentences. Finds them by their
// quotes, which is enough for sources that a formatter has laid out. Judges nothing.
import { readSources, withoutComments } from '../../kit/sources/source-files.js';

export interface ProgramText {
  /** Below src, as `cli/run.ts`. */
  readonly path: string;
  readonly prose: string;
}

const literal = /'((?:\\.|[^'\\\n])*)'|"((?:\\.|[^"\\\n])*)"|`((?:\\.|[^`\\])*)`/g;
const fewestWords = 3;

/** Every sentence in the sources, without what is filled in and without code spans. */
export function readProgramTexts(): readonly ProgramText[] {
  return readSources().flatMap(({ path, text }) => proseOfSource(text).map((prose) => ({ path, prose })));
}

/** @returns the texts of a source that have at least three words, each in one piece */
export function proseOfSource(source: string): readonly string[] {
  return [...withoutComments(source).matchAll(literal)]
    .map(([, single, double, template]) => single ?? double ?? template ?? '')
    .map((text) => text.replace(/\$\{[^}]*\}/g, '0').replace(/\\?`[^`]*\\?`/g, '0'))
    .filter((text) => (text.match(/\b[A-Za-z]{2,}\b(?= |[,.:;]|$)/g) ?? []).length >= fewestWords);
}
