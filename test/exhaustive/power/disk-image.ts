// A file tree as data: nodes (files, directories, links) and the entries that name them, read from a directory and
// written to one. Also the list of changes that recorded operations are to such a tree, node by node, so that a
// subset of them can be applied. Says nothing about which subsets a crash can leave.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { FileOperation } from '../replay/recorded-operations.js';

export type NodeId = number;

export interface DiskNode {
  readonly kind: 'file' | 'directory' | 'link';
  /** As it was made: before any chmod. */
  readonly mode: number;
  /** Of a link. */
  readonly target: string;
  /** Of a file that was there before. */
  readonly data: Buffer;
}

/** One name in one directory comes to be, changes or goes. */
export interface EntryEffect {
  readonly directory: NodeId;
  readonly name: string;
  /** Absent: the name is removed. */
  readonly node?: NodeId;
}

export type Change =
  /** All effects or none. */
  | { readonly kind: 'entries'; readonly effects: readonly EntryEffect[] }
  | { readonly kind: 'data'; readonly node: NodeId; readonly offset: number; readonly bytes: Buffer }
  | { readonly kind: 'size'; readonly node: NodeId; readonly size: number }
  | { readonly kind: 'mode'; readonly node: NodeId; readonly mode: number }
  | { readonly kind: 'times'; readonly node: NodeId; readonly mtimeSeconds: number }
  | { readonly kind: 'flush'; readonly node: NodeId; readonly what: 'all' | 'data' }
  | { readonly kind: 'flush-all' }
  | { readonly kind: 'acknowledged' };

export type PlacedChange = Change & {
  /** Index of the operation that it is a part of. */
  readonly operation: number;
  /** For people: what happened to which path. */
  readonly label: string;
};

/** A tree before the recording, and all that was done to it. */
export interface DiskStory {
  readonly nodes: readonly DiskNode[];
  /** Entries by directory, before. */
  readonly before: ReadonlyMap<NodeId, ReadonlyMap<string, NodeId>>;
  readonly changes: readonly PlacedChange[];
}

/** What a data change leaves when it is not whole: its length without its bytes, or only its first bytes. */
export type Torn = 'zeros' | 'half' | 'first-block';

const rootNode: NodeId = 0;
const none = Buffer.alloc(0);

interface MutableStory {
  readonly nodes: DiskNode[];
  readonly entries: Map<NodeId, Map<string, NodeId>>;
}

/** Reads a tree; what has two names is one node. */
function readTree(root: string): MutableStory {
  const story: MutableStory = { nodes: [], entries: new Map() };
  const known = new Map<number, NodeId>();
  const visit = (path: string): NodeId => {
    const stats = fs.lstatSync(path);
    const before = known.get(stats.ino);
    if (before !== undefined) return before;
    const kind = stats.isDirectory() ? 'directory' : stats.isSymbolicLink() ? 'link' : 'file';
    if (kind === 'file' && !stats.isFile()) throw new Error(`${path} is no file`);
    const id = addNode(story, {
      kind,
      mode: stats.mode & 0o7777,
      target: kind === 'link' ? fs.readlinkSync(path) : '',
      data: kind === 'file' ? fs.readFileSync(path) : none,
    });
    known.set(stats.ino, id);
    if (kind !== 'directory') return id;
    for (const name of fs.readdirSync(path).sort()) story.entries.get(id)?.set(name, visit(join(path, name)));
    return id;
  };
  visit(root);
  return story;
}

function addNode(story: MutableStory, node: DiskNode): NodeId {
  const id = story.nodes.push(node) - 1;
  if (node.kind === 'directory') story.entries.set(id, new Map());
  return id;
}

/** @returns how to go on recording from the tree as it is now: the operations that follow become a story */
export function openStory(root: string): (operations: readonly FileOperation[]) => DiskStory {
  const start = readTree(root);
  return (operations) => {
    const story: MutableStory = { nodes: [...start.nodes], entries: copyEntries(start.entries) };
    const translate = createTranslator(story);
    const changes = operations.flatMap((operation, index) => {
      const label = labelOf(operation);
      return translate(operation).map((change) => ({ ...change, operation: index, label }));
    });
    return { nodes: story.nodes, before: start.entries, changes };
  };
}

function copyEntries(
  entries: ReadonlyMap<NodeId, ReadonlyMap<string, NodeId>>,
): Map<NodeId, Map<string, NodeId>> {
  return new Map([...entries].map(([id, names]) => [id, new Map(names)]));
}

function labelOf(operation: FileOperation): string {
  const {
    kind,
    path = '',
    from,
    what,
  } = operation as { kind: string; path?: string; from?: string; what?: string };
  const word = kind === 'flush' ? (what === 'data' ? 'fdatasync' : 'fsync') : kind;
  return plainName(from === undefined ? `${word} ${path}` : `${word} ${from} -> ${path}`);
}

/** Random parts of names say nothing, and would make every recording another one. */
export function plainName(label: string): string {
  return label
    .trim()
    .replaceAll(/\.writ-tmp-[0-9a-f]+/g, 'TMP')
    .replaceAll(/\bc-[0-9a-f]{8}\b/g, 'CYCLE')
    .replaceAll(/\b(\d+)-[0-9a-f]{12}\b/g, '$1-DIGEST');
}

/** Follows the tree as it is at each moment, to know which node a path means. */
function createTranslator(story: MutableStory): (operation: FileOperation) => Change[] {
  const { nodes, entries } = story;
  const sizes = new Map<NodeId, number>();
  const cursors = new Map<NodeId, number>();
  const find = (path: string): NodeId | undefined => {
    if (path === '.') return rootNode;
    return entries.get(find(dirname(path)) ?? -1)?.get(basename(path));
  };
  const get = (path: string): NodeId => {
    const id = find(path);
    if (id === undefined) throw new Error(`${path} is not there: the recording has a hole`);
    return id;
  };
  const sizeOf = (id: NodeId): number => sizes.get(id) ?? nodes[id]?.data.length ?? 0;
  const enter = (path: string, node?: NodeId): EntryEffect => {
    const effect = {
      directory: get(dirname(path)),
      name: basename(path),
      ...(node === undefined ? {} : { node }),
    };
    const names = entries.get(effect.directory);
    if (node === undefined) names?.delete(effect.name);
    else names?.set(effect.name, node);
    return effect;
  };
  const make = (path: string, node: Partial<DiskNode> & Pick<DiskNode, 'kind'>): Change[] => {
    const id = addNode(story, { mode: 0, target: '', data: none, ...node });
    return [{ kind: 'entries', effects: [enter(path, id)] }];
  };
  const write = (path: string, offset: number | 'next', bytes: Buffer): Change[] => {
    const node = get(path);
    const at = offset === 'next' ? (cursors.get(node) ?? 0) : offset;
    if (offset === 'next') cursors.set(node, at + bytes.length);
    sizes.set(node, Math.max(sizeOf(node), at + bytes.length));
    return [{ kind: 'data', node, offset: at, bytes }];
  };
  return (operation) => {
    switch (operation.kind) {
      case 'create':
        return find(operation.path) === undefined ? make(operation.path, { ...operation, kind: 'file' }) : [];
      case 'mkdir':
        return make(operation.path, { ...operation, kind: 'directory' });
      case 'symlink':
        return make(operation.path, { mode: 0o777, target: operation.target, kind: 'link' });
      case 'open':
        cursors.set(get(operation.path), operation.at === 'end' ? sizeOf(get(operation.path)) : 0);
        return [];
      case 'link':
        return [{ kind: 'entries', effects: [enter(operation.path, get(operation.from))] }];
      case 'rename':
        return renamed(operation, { get, find, enter });
      case 'unlink':
      case 'rmdir':
        get(operation.path);
        return [{ kind: 'entries', effects: [enter(operation.path)] }];
      case 'write':
        return write(operation.path, operation.offset, operation.bytes);
      case 'truncate':
        sizes.set(get(operation.path), operation.size);
        return [{ kind: 'size', node: get(operation.path), size: operation.size }];
      case 'mode':
        return [{ kind: 'mode', node: get(operation.path), mode: operation.mode }];
      case 'times':
        return [{ kind: 'times', node: get(operation.path), mtimeSeconds: operation.mtimeSeconds }];
      case 'flush':
        return [{ kind: 'flush', node: get(operation.path), what: operation.what }];
      default:
        return [operation];
    }
  };
}

interface Names {
  get(path: string): NodeId;
  find(path: string): NodeId | undefined;
  enter(path: string, node?: NodeId): EntryEffect;
}

/** In one directory it is one change; between two it is one in each, and a profile may hold them together. */
function renamed({ from, path }: { readonly from: string; readonly path: string }, names: Names): Change[] {
  const node = names.get(from);
  // Two names of one file: rename does nothing (POSIX).
  if (names.find(path) === node) return [];
  const effects = [names.enter(path, node), names.enter(from)];
  if (effects[0]?.directory === effects[1]?.directory) return [{ kind: 'entries', effects }];
  return effects.map((effect) => ({ kind: 'entries', effects: [effect] }));
}

/** A tree that a crash may leave. */
export interface DiskImage {
  readonly entries: ReadonlyMap<NodeId, ReadonlyMap<string, NodeId>>;
  mode(node: NodeId): number;
  target(node: NodeId): string;
  data(node: NodeId): Buffer;
  dataDigest(node: NodeId): string;
  kind(node: NodeId): DiskNode['kind'];
  mtimeSeconds(node: NodeId): number | undefined;
}

/**
 * @param applied indices of the changes that reached the disk, ascending
 * @param torn those that did so in part
 */
export function imageOf(
  story: DiskStory,
  applied: Iterable<number>,
  torn: ReadonlyMap<number, Torn>,
): DiskImage {
  const entries = copyEntries(story.before);
  for (const [id, node] of story.nodes.entries()) {
    if (node.kind === 'directory' && !entries.has(id)) entries.set(id, new Map());
  }
  const modes = new Map<NodeId, number>();
  const times = new Map<NodeId, number>();
  const written = new Map<NodeId, number[]>();
  const node = (id: NodeId): DiskNode => story.nodes[id]!;
  for (const index of applied) {
    const change = story.changes[index]!;
    if (change.kind === 'entries') for (const effect of change.effects) applyEntry(entries, effect);
    if (change.kind === 'mode') modes.set(change.node, change.mode);
    if (change.kind === 'times') times.set(change.node, change.mtimeSeconds);
    if (change.kind === 'size' || change.kind === 'data')
      written.set(change.node, [...(written.get(change.node) ?? []), index]);
  }
  const data = (id: NodeId): Buffer =>
    contentOf(story, node(id).data, { indices: written.get(id) ?? [], torn });
  return {
    entries,
    mode: (id) => modes.get(id) ?? node(id).mode,
    target: (id) => node(id).target,
    data,
    dataDigest: (id) => {
      const key = `${id}:${(written.get(id) ?? []).map((index) => `${index}${torn.get(index) ?? ''}`)}`;
      const known = digestsOf(story).get(key) ?? createHash('sha256').update(data(id)).digest('base64');
      digestsOf(story).set(key, known);
      return known;
    },
    kind: (id) => node(id).kind,
    mtimeSeconds: (id) => times.get(id),
  };
}

/** By node and what was written to it: thousands of images share a handful of contents. */
const knownDigests = new WeakMap<DiskStory, Map<string, string>>();

function digestsOf(story: DiskStory): Map<string, string> {
  const known = knownDigests.get(story) ?? new Map<string, string>();
  knownDigests.set(story, known);
  return known;
}

function contentOf(
  { changes }: DiskStory,
  before: Buffer,
  { indices, torn }: { readonly indices: readonly number[]; readonly torn: ReadonlyMap<number, Torn> },
): Buffer {
  return indices.reduce((content, index) => {
    const change = changes[index]!;
    if (change.kind === 'size') return resized(content, change.size);
    if (change.kind !== 'data') return content;
    return overwritten(content, change.offset, tornBytes(change.bytes, torn.get(index)));
  }, before);
}

function applyEntry(entries: Map<NodeId, Map<string, NodeId>>, { directory, name, node }: EntryEffect): void {
  const names = entries.get(directory)!;
  if (node === undefined) names.delete(name);
  else names.set(name, node);
}

function tornBytes(bytes: Buffer, torn: Torn | undefined): Buffer {
  if (torn === 'zeros') return Buffer.alloc(bytes.length);
  if (torn === 'half') return bytes.subarray(0, bytes.length >> 1);
  return torn === 'first-block' ? bytes.subarray(0, blockBytes) : bytes;
}

export const blockBytes = 4096;

function resized(data: Buffer, size: number): Buffer {
  return overwritten(none, 0, data.subarray(0, size), size);
}

function overwritten(old: Buffer, offset: number, bytes: Buffer, atLeast = 0): Buffer {
  const next = Buffer.alloc(Math.max(old.length, offset + bytes.length, atLeast));
  old.copy(next);
  bytes.copy(next, offset);
  return next;
}

/** @returns one digest for images that look the same from outside; times are left out: nothing is decided by them */
export function imageDigest(image: DiskImage, options: { readonly without?: string } = {}): string {
  const digest = createHash('sha256');
  walk(image, rootNode, '', (path, node) => {
    if (options.without !== undefined && path.startsWith(options.without)) return;
    digest.update(
      `${path}\0${image.kind(node)}\0${image.mode(node)}\0${image.target(node)}\0${image.dataDigest(node)}\0`,
    );
  });
  return digest.digest('base64');
}

function walk(image: DiskImage, id: NodeId, path: string, visit: (path: string, node: NodeId) => void): void {
  visit(path, id);
  const names = [...(image.entries.get(id) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [name, node] of names) walk(image, node, path === '' ? name : `${path}/${name}`, visit);
}

/** Writes an image below a directory that is not there yet. */
export function writeImage(image: DiskImage, root: string): void {
  const directories: [string, NodeId][] = [];
  walk(image, rootNode, '', (path, id) => {
    const place = join(root, path);
    const kind = image.kind(id);
    if (kind === 'link') return fs.symlinkSync(image.target(id), place);
    if (kind === 'directory') {
      directories.push([place, id]);
      return fs.mkdirSync(place, { recursive: true, mode: 0o700 });
    }
    fs.writeFileSync(place, image.data(id));
    fs.chmodSync(place, image.mode(id));
    const mtime = image.mtimeSeconds(id);
    if (mtime !== undefined) fs.utimesSync(place, mtime, mtime);
  });
  for (const [place, id] of directories) fs.chmodSync(place, image.mode(id));
}

/** @returns what differs between the image and the real directory; nothing for a recording without a hole */
export function differences(image: DiskImage, root: string): string[] {
  const real = readTree(root);
  const found = (story: MutableStory): DiskImage =>
    imageOf({ nodes: story.nodes, before: story.entries, changes: [] }, [], new Map());
  const lines = (one: DiskImage): Map<string, string> => {
    const all = new Map<string, string>();
    walk(one, rootNode, '.', (path, node) => {
      const line = `${one.kind(node)} ${one.mode(node).toString(8)} ${one.target(node)} ${one.dataDigest(node)}`;
      all.set(path, line);
    });
    return all;
  };
  const [recorded, actual] = [lines(image), lines(found(real))];
  return [...new Set([...recorded.keys(), ...actual.keys()])]
    .filter((path) => recorded.get(path) !== actual.get(path))
    .map((path) => `${path}: recorded ${recorded.get(path)}, really ${actual.get(path)}`);
}
