// The modules of the sources are their folders. They must not import each other in a cycle, import a file that is not
// public, or have too many files. Owns the rules; modules.test applies them to the sources.
import { dirname } from 'node:path';
import type { SourceFile } from '../../kit/sources/source-files.js';

/** The largest number of files in one folder that a reader can survey. */
export const maxFilesInFolder = 20;

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** @returns the folder of a path below src, as `agent/cycle` */
export function moduleOf(path: string): string {
  return dirname(path);
}

export function fileGraph(sources: readonly SourceFile[]): Graph {
  return graphOf(sources, (path) => path);
}

export function moduleGraph(sources: readonly SourceFile[]): Graph {
  return graphOf(sources, moduleOf);
}

/** @returns the nodes on a cycle, each once, sorted; empty without a cycle */
export function onCycles(graph: Graph): string[] {
  const left = new Map([...graph].map(([node, next]) => [node, new Set(next)]));
  const isTarget = (node: string): boolean => [...left.values()].some((next) => next.has(node));
  // A node without a remaining import, or without a remaining importer, is on no cycle.
  for (let before = -1; before !== left.size; ) {
    before = left.size;
    for (const [node, next] of left) {
      for (const one of next) if (!left.has(one)) next.delete(one);
      if (next.size === 0 || !isTarget(node)) left.delete(node);
    }
  }
  return [...left.keys()].sort();
}

/** @returns one line for each import of a file of another module that is not a public file of that module */
export function importsOfPrivateFiles(
  sources: readonly SourceFile[],
  publicFiles: Readonly<Record<string, readonly string[]>>,
): string[] {
  return foreignImports(sources)
    .filter(({ to }) => !(publicFiles[moduleOf(to)] ?? []).includes(nameOf(to)))
    .map(({ from, to }) => `${from} imports ${to}`);
}

/** @returns one line for each public file that no other module imports, or that does not exist */
export function unusedPublicFiles(
  sources: readonly SourceFile[],
  publicFiles: Readonly<Record<string, readonly string[]>>,
): string[] {
  const used = new Set(foreignImports(sources).map(({ to }) => to.replace(/\.tsx$/, '.ts')));
  return Object.entries(publicFiles).flatMap(([module, names]) =>
    names.map((name) => `${module}/${name}.ts`).filter((path) => !used.has(path)),
  );
}

/** @returns a line for each folder with too many files; @param paths of files, with their folders */
export function fullFolders(paths: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const path of paths) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > maxFilesInFolder)
    .map(([module, count]) => `${module}: ${count}`);
}

interface Import {
  readonly from: string;
  readonly to: string;
}

function foreignImports(sources: readonly SourceFile[]): Import[] {
  return importsOf(sources).filter(({ from, to }) => moduleOf(from) !== moduleOf(to));
}

function importsOf(sources: readonly SourceFile[]): Import[] {
  return sources.flatMap(({ path, imports }) =>
    imports.flatMap(({ file }) => (file === undefined ? [] : [{ from: path, to: file }])),
  );
}

function graphOf(sources: readonly SourceFile[], nodeOf: (path: string) => string): Graph {
  const graph = new Map(sources.map(({ path }) => [nodeOf(path), new Set<string>()]));
  for (const { from, to } of importsOf(sources)) {
    if (nodeOf(from) !== nodeOf(to)) graph.get(nodeOf(from))?.add(nodeOf(to));
  }
  return graph;
}

function nameOf(path: string): string {
  return path.slice(moduleOf(path).length + 1).replace(/\.tsx?$/, '');
}
