// Which files the word list is enforced in, and how the prose of each is found. Judges nothing.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../kit/sources/source-files.js';
import { proseOfComments, proseOfMarkdown, unreleased } from './prose.js';

export interface Document {
  /** Below the project, as `docs/fleet.md`. */
  readonly path: string;
  readonly prose: string;
}

const folders = ['docs', 'src', 'test', 'scripts', 'bundles', 'keys'];
const comments = /\.(?:service|target|conf|env|yaml|yml)$|\/writ-policy$/;

/** Generated pages: their sentences are those of src, where they are checked. */
const generated = ['docs/errors.md'];

/** Every document that a person reads, sorted by path. */
export function readDocuments(): readonly Document[] {
  const pages = [
    ...namesIn('.', { deep: false }),
    ...folders.flatMap((folder) => namesIn(folder, { deep: true })),
  ]
    .filter((path) => path.endsWith('.md') && !generated.includes(path))
    .map((path) => ({ path, prose: proseOfMarkdown(textOf(path)) }));
  const files = namesIn('packaging', { deep: true })
    .filter((path) => comments.test(path))
    .map((path) => ({ path, prose: proseOfComments(read(path)) }));
  return [...pages, ...files].sort((a, b) => (a.path < b.path ? -1 : 1));
}

function namesIn(folder: string, { deep }: { readonly deep: boolean }): string[] {
  return readdirSync(join(projectRoot, folder), { recursive: deep, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
    .map((entry) => join(entry.parentPath, entry.name).slice(projectRoot.length + 1));
}

function textOf(path: string): string {
  const text = read(path);
  return path === 'CHANGELOG.md' ? unreleased(text) : text;
}

function read(path: string): string {
  return readFileSync(join(projectRoot, path), 'utf8');
}
