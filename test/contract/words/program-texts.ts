// What the program says, found in its sources: string literals and templates that read as sentences, and comments. Finds them
// by their quotes, which is enough for sources that a formatter has laid out. Judges nothing.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot, withoutComments } from '../../kit/sources/source-files.js';

export interface ProgramText {
  /** Below the project, as `src/cli/run.ts`. */
  readonly path: string;
  readonly prose: string;
}

const literal = /'((?:\\.|[^'\\\n])*)'|"((?:\\.|[^"\\\n])*)"|`((?:\\.|[^`\\])*)`/g;
const fewestWords = 3;

/** Every sentence in the sources below a folder, without what is filled in and without code spans. */
export function readProgramTexts(folder: string): readonly ProgramText[] {
  return readFiles(folder).flatMap(({ path, text }) => proseOfSource(text).map((prose) => ({ path, prose })));
}

/** The comments of each source below a folder, each in its line, without code spans. */
export function readComments(folder: string): readonly ProgramText[] {
  return readFiles(folder).map(({ path, text }) => ({ path, prose: commentsOfSource(text) }));
}

function readFiles(folder: string): { readonly path: string; readonly text: string }[] {
  return readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:tsx?|js)$/.test(name))
    .map((name) => join(folder, name))
    .map((path) => ({ path, text: readFileSync(join(projectRoot, path), 'utf8') }));
}

/** @returns of each line what is said in a comment that has the line to itself */
export function commentsOfSource(source: string): string {
  return source
    .split('\n')
    .map((line) => /^\s*(?:\/\/|\/\*\*?|\*)(?: (.*))?$/.exec(line)?.[1] ?? '')
    .map((said) => said.replace(/`[^`]*`/g, '0'))
    .join('\n');
}

/** @returns the texts of a source that have at least three words, each in one piece */
export function proseOfSource(source: string): readonly string[] {
  return [...withoutComments(source).matchAll(literal)]
    .map(([, single, double, template]) => single ?? double ?? template ?? '')
    .map((text) => text.replace(/\$\{[^}]*\}/g, '0').replace(/\\?`[^`]*\\?`/g, '0'))
    .filter((text) => (text.match(/\b[A-Za-z]{2,}\b(?= |[,.:;]|$)/g) ?? []).length >= fewestWords);
}
