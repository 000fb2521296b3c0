// A file tree as data: nodes (files, directories, links) and the entries that name them, read from a directory and written to
// one. Also translates recorded operations to changes of nodes, so that any subset of them can be applied. crash-states.ts
// decides which subsets a crash can leave.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { FileOperation } from '../replay/recorded-operations.js';

export type NodeId = number;

export interface DiskNode {
  readonly kind: 'file' | 'directory' | 'link';
  /** The mode at creation, before any chmod. */
  readonly mode: number;
  /** The target of a link. */
  readonly target: string;
  /** The content of a file that existed before the recording. */
  readonly data: Buffer;
}

/** Adds, replaces or removes one name in one directory. */
export interface EntryEffect {
  readonly directory: NodeId;
  readonly name: string;
  /** Absent when the name is removed. */
  readonly node?: NodeId;
}

export type Change =
  /** All effects happen, or none. */
  | { readonly kind: 'entries'; readonly effects: readonly EntryEffect[] }
  | { readonly kind: 'data'; readonly node: NodeId; readonly offset: number; readonly bytes: Buffer }
  | { readonly kind: 'size'; readonly node: NodeId; readonly size: number }
  | { readonly kind: 'mode'; readonly node: NodeId; readonly mode: number }
  | { readonly kind: 'times'; readonly node: NodeId; readonly mtimeSeconds: number }
  | { readonly kind: 'flush'; readonly node: NodeId; readonly what: 'all' | 'data' }
  | { readonly kind: 'flush-all' }
  | { readonly kind: 'acknowledged' };

export type PlacedChange = Change & {
  /** Index of the operation that this change belongs to. */
  readonly operation: number;
  /** A description for people: the operation and its path. */
  readonly label: string;
};

/** A tree before the recording, and all changes to it. */
export interface DiskRecording {
  readonly nodes: readonly DiskNode[];
  /** Entries by directory, before the recording. */
  readonly before: ReadonlyMap<NodeId, ReadonlyMap<string, NodeId>>;
  readonly changes: readonly PlacedChange[];
}

/** The result of an incomplete write: its length without its bytes, or only its first bytes. */
export type Torn = 'zeros' | 'half' | 'first-block';

const rootNode: NodeId = 0;
const none = Buffer.alloc(0);

interface MutableRecording {
  readonly nodes: DiskNode[];
  readonly entries: Map<NodeId, Map<string, NodeId>>;
}

/** Reads a tree; a file with two names is one node. */
function readTree(root: string): MutableRecording {
  const recording: MutableRecording = { nodes: [], entries: new Map() };
  const known = new Map<number, NodeId>();
  const visit = (path: string): NodeId => {
    const stats = fs.lstatSync(path);
    const before = known.get(stats.ino);
    if (before !== undefined) return before;
    const kind = stats.isDirectory() ? 'directory' : stats.isSymbolicLink() ? 'link' : 'file';
    if (kind === 'file' && !stats.isFile()) throw new Error(`${path} is no file`);
    const id = addNode(recording, {
      kind,
      mode: stats.mode & 0o7777,
      target: kind === 'link' ? fs.readlinkSync(path) : '',
      data: kind === 'file' ? fs.readFileSync(path) : none,
    });
    known.set(stats.ino, id);
    if (kind !== 'directory') return id;
    for (const name of fs.readdirSync(path).sort())
      recording.entries.get(id)?.set(name, visit(join(path, name)));
    return id;
  };
  visit(root);
  return recording;
}

function addNode(recording: MutableRecording, node: DiskNode): NodeId {
  const id = recording.nodes.push(node) - 1;
  if (node.kind === 'directory') recording.entries.set(id, new Map());
  return id;
}

/** Reads the tree as it is now. @returns a function that translates the operations after it to a recording */
export function openRecording(root: string): (operations: readonly FileOperation[]) => DiskRecording {
  const start = readTree(root);
  return (operations) => {
    const recording: MutableRecording = { nodes: [...start.nodes], entries: copyEntries(start.entries) };
    const translate = createTranslator(recording);
    const changes = operations.flatMap((operation, index) => {
      const label = labelOf(operation);
      return translate(operation).map((change) => ({ ...change, operation: index, label }));
    });
    return { nodes: recording.nodes, before: start.entries, changes };
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
  const operationName = kind === 'flush' ? (what === 'data' ? 'fdatasync' : 'fsync') : kind;
  return plainName(from === undefined ? `${operationName} ${path}` : `${operationName} ${from} -> ${path}`);
}

/** Replaces random parts of names, so that two recordings of a cycle are equal. */
export function plainName(label: string): string {
  return label
    .trim()
    .replaceAll(/\.writ-tmp-[0-9a-f]+/g, 'TMP')
    .replaceAll(/\bc-[0-9a-f]{8}\b/g, 'CYCLE')
    .replaceAll(/\b(\d+)-[0-9a-f]{12}\b/g, '$1-DIGEST');
}

/** Follows the tree at each operation, to resolve paths to nodes. */
function createTranslator(recording: MutableRecording): (operation: FileOperation) => Change[] {
  const { nodes, entries } = recording;
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
    const id = addNode(recording, { mode: 0, target: '', data: none, ...node });
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

/**
 * A rename in one directory is one change. Between two directories it is a change in each, which a profile may keep
 * together.
 */
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
 * @param torn the changes that reached it in part
 */
export function imageOf(
  recording: DiskRecording,
  applied: Iterable<number>,
  torn: ReadonlyMap<number, Torn>,
): DiskImage {
  const entries = copyEntries(recording.before);
  for (const [id, node] of recording.nodes.entries()) {
    if (node.kind === 'directory' && !entries.has(id)) entries.set(id, new Map());
  }
  const modes = new Map<NodeId, number>();
  const times = new Map<NodeId, number>();
  const written = new Map<NodeId, number[]>();
  const node = (id: NodeId): DiskNode => recording.nodes[id]!;
  for (const index of applied) {
    const change = recording.changes[index]!;
    if (change.kind === 'entries') for (const effect of change.effects) applyEntry(entries, effect);
    if (change.kind === 'mode') modes.set(change.node, change.mode);
    if (change.kind === 'times') times.set(change.node, change.mtimeSeconds);
    if (change.kind === 'size' || change.kind === 'data')
      written.set(change.node, [...(written.get(change.node) ?? []), index]);
  }
  const data = (id: NodeId): Buffer =>
    contentOf(recording, node(id).data, { indices: written.get(id) ?? [], torn });
  return {
    entries,
    mode: (id) => modes.get(id) ?? node(id).mode,
    target: (id) => node(id).target,
    data,
    dataDigest: (id) => {
      const key = `${id}:${(written.get(id) ?? []).map((index) => `${index}${torn.get(index) ?? ''}`)}`;
      const known = digestsOf(recording).get(key) ?? createHash('sha256').update(data(id)).digest('base64');
      digestsOf(recording).set(key, known);
      return known;
    },
    kind: (id) => node(id).kind,
    mtimeSeconds: (id) => times.get(id),
  };
}

/** Digests by node and writes, because thousands of images share a few contents. */
const knownDigests = new WeakMap<DiskRecording, Map<string, string>>();

function digestsOf(recording: DiskRecording): Map<string, string> {
  const known = knownDigests.get(recording) ?? new Map<string, string>();
  knownDigests.set(recording, known);
  return known;
}

function contentOf(
  { changes }: DiskRecording,
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

/**
 * @returns an equal digest for images with equal names, contents and modes; without times, because no decision uses
 * them
 */
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

/** Writes an image to a directory that does not exist yet. */
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

/** @returns the differences between the image and the real directory; empty for a complete recording */
export function differences(image: DiskImage, root: string): string[] {
  const real = readTree(root);
  const found = (recording: MutableRecording): DiskImage =>
    imageOf({ nodes: recording.nodes, before: recording.entries, changes: [] }, [], new Map());
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
