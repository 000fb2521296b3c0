// Counts what breaks a rule of language-rules, folder by folder. Judges nothing.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectRoot, withoutComments } from '../../kit/sources/source-files.js';
import { type Document, readDocuments } from './documents.js';
import { namePart, sentenceExceptions, sentenceRules } from './language-rules.js';
import { commentsOfSource, proseOfSource } from './program-texts.js';

/** For one folder, by kind; a kind without a case is left out. */
export type FolderCounts = Readonly<Record<string, number>>;

export interface CountedSource {
  /** Below the project, as `src/cli/run.ts`. */
  readonly path: string;
  readonly text: string;
}

/** Generated, of others, or the rules themselves. */
const leftOut = /\/node_modules\/|^test\/golden\/|^test\/contract\/words\//;
const codeFolders = ['src', 'test', 'scripts', 'bench', 'demo', 'site'];
/** Of a path, so that a folder is a module of `src` or a kind of test. */
const folderDepth = 3;
const declaredExport = /^export (?:async |abstract )?(?:function\*?|const|class|interface|type|enum) (\w+)/gm;

export interface LanguageTexts {
  readonly sources: readonly CountedSource[];
  readonly documents: readonly Document[];
}

/** Reads the code, the tests, and the documents of this project. */
export function readLanguageTexts(): LanguageTexts {
  return { sources: codeFolders.flatMap(readSources), documents: readDocuments() };
}

/** @returns the counts of each folder that breaks a rule, sorted by its name */
export function countLanguage({ sources, documents }: LanguageTexts): Readonly<Record<string, FolderCounts>> {
  const counts = new Map<string, Map<string, number>>();
  const add = (path: string, kind: string, count: number): void => {
    if (count === 0) return;
    const folder = folderOf(path);
    const kinds = counts.get(folder) ?? new Map<string, number>();
    counts.set(folder, kinds.set(kind, (kinds.get(kind) ?? 0) + count));
  };
  for (const { path, text } of sources) {
    for (const [kind, count] of countSentences(
      `${commentsOfSource(text)}\n${proseOfSource(text).join('\n')}`,
    ))
      add(path, kind, count);
    add(path, 'name', namesIn(text).filter(breaksNameRule).length);
    add(path, 'yesLiteral', [...text.matchAll(/'yes'/g)].length);
  }
  for (const [path, count] of countSharedExports(sources)) add(path, 'sharedExport', count);
  for (const { path, prose } of documents)
    for (const [kind, count] of countSentences(prose)) add(path, kind, count);
  const sorted = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(
    sorted.map(([folder, kinds]) => [folder, Object.fromEntries([...kinds].sort())] as const),
  );
}

/** @param prose in lines; a phrase may run over their ends */
export function countSentences(prose: string): readonly (readonly [kind: string, count: number])[] {
  const flat = sentenceExceptions.reduce(
    (text, { phrase }) => text.replace(phrase, ''),
    prose.replace(/\s+/g, ' '),
  );
  return Object.entries(sentenceRules).map(([kind, pattern]) => [kind, [...flat.matchAll(pattern)].length]);
}

/** @param name as `lookAtBakes` or `MAX_LOOKS` */
export function breaksNameRule(name: string): boolean {
  return name.split(/(?<=[a-z\d])(?=[A-Z])|_/).some((part) => namePart.test(part));
}

/** @returns each identifier of the code once */
function namesIn(source: string): readonly string[] {
  const code = withoutComments(source).replace(/'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g, "''");
  return [...new Set([...code.matchAll(/(?<![\w$])[A-Za-z_$][\w$]*/g)].map(([name]) => name))];
}

/** @returns for each file of `src` how many of its exports another file exports under the same name; `command` is the contract of a command */
export function countSharedExports(sources: readonly CountedSource[]): ReadonlyMap<string, number> {
  const places = new Map<string, string[]>();
  for (const { path, text } of sources.filter(({ path }) => path.startsWith('src/')))
    for (const [, name = ''] of text.matchAll(declaredExport))
      if (name !== 'command') places.set(name, [...(places.get(name) ?? []), path]);
  const counts = new Map<string, number>();
  for (const paths of places.values())
    if (paths.length > 1) for (const path of paths) counts.set(path, (counts.get(path) ?? 0) + 1);
  return counts;
}

function folderOf(path: string): string {
  const folder = dirname(path).split('/').slice(0, folderDepth).join('/');
  return path.endsWith('.md') && folder === '.' ? path : folder;
}

function readSources(folder: string): CountedSource[] {
  return readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => /\.(?:tsx?|js)$/.test(path) && !leftOut.test(path))
    .map((path) => ({ path, text: readFileSync(join(projectRoot, path), 'utf8') }));
}
