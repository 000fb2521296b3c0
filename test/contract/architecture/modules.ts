// The rooms of the sources, which are their folders, and what they must not do: import each other in a circle, reach past
// a face, or grow beyond what a reader takes in at once. Owns the rules; rooms.test holds the sources to them.
import { dirname } from 'node:path';
import type { SourceFile } from '../../kit/sources/source-files.js';

/** More than so many files in one folder hide each other. */
export const maxFilesInFolder = 20;

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** @returns the folder of a path below src, as `agent/cycle` */
export function roomOf(path: string): string {
  return dirname(path);
}

export function fileGraph(sources: readonly SourceFile[]): Graph {
  return graphOf(sources, (path) => path);
}

export function roomGraph(sources: readonly SourceFile[]): Graph {
  return graphOf(sources, roomOf);
}

/** @returns what lies on a circle of arrows, each once, sorted; empty where every arrow goes one way */
export function onCircles(graph: Graph): string[] {
  const left = new Map([...graph].map(([node, next]) => [node, new Set(next)]));
  const isTarget = (node: string): boolean => [...left.values()].some((next) => next.has(node));
  // Who imports nothing that is left, or is imported by nobody who is left, is on no circle.
  for (let before = -1; before !== left.size; ) {
    before = left.size;
    for (const [node, next] of left) {
      for (const one of next) if (!left.has(one)) next.delete(one);
      if (next.size === 0 || !isTarget(node)) left.delete(node);
    }
  }
  return [...left.keys()].sort();
}

/** @returns one line for each import of a file of another room that is not in that room's face */
export function pastFaces(
  sources: readonly SourceFile[],
  faces: Readonly<Record<string, readonly string[]>>,
): string[] {
  return foreignImports(sources)
    .filter(({ to }) => !(faces[roomOf(to)] ?? []).includes(nameOf(to)))
    .map(({ from, to }) => `${from} imports ${to}`);
}

/** @returns one line for each file of a face that no other room imports, and for each face of no room */
export function unusedFaces(
  sources: readonly SourceFile[],
  faces: Readonly<Record<string, readonly string[]>>,
): string[] {
  const used = new Set(foreignImports(sources).map(({ to }) => to.replace(/\.tsx$/, '.ts')));
  return Object.entries(faces).flatMap(([room, names]) =>
    names.map((name) => `${room}/${name}.ts`).filter((path) => !used.has(path)),
  );
}

/** @returns a line for each folder with too many files; @param paths of files, with their folders */
export function fullFolders(paths: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const path of paths) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > maxFilesInFolder)
    .map(([room, count]) => `${room}: ${count}`);
}

interface Arrow {
  readonly from: string;
  readonly to: string;
}

function foreignImports(sources: readonly SourceFile[]): Arrow[] {
  return arrows(sources).filter(({ from, to }) => roomOf(from) !== roomOf(to));
}

function arrows(sources: readonly SourceFile[]): Arrow[] {
  return sources.flatMap(({ path, imports }) =>
    imports.flatMap(({ file }) => (file === undefined ? [] : [{ from: path, to: file }])),
  );
}

function graphOf(sources: readonly SourceFile[], nodeOf: (path: string) => string): Graph {
  const graph = new Map(sources.map(({ path }) => [nodeOf(path), new Set<string>()]));
  for (const { from, to } of arrows(sources)) {
    if (nodeOf(from) !== nodeOf(to)) graph.get(nodeOf(from))?.add(nodeOf(to));
  }
  return graph;
}

function nameOf(path: string): string {
  return path.slice(roomOf(path).length + 1).replace(/\.tsx?$/, '');
}
