// The damages of one entry of the state directory: bit rot, an operator's mistake, a bad disk, a hostile user. Owns the
// damage, and the list of all entries, read from the disk so that none is missed. state-damage.test.ts owns the expected
// results.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join, relative } from 'node:path';

/** `other`: no damage changes its bytes, because reading a device never ends and writing to a FIFO blocks. */
export type EntryKind = 'file' | 'directory' | 'link' | 'other';

export interface Entry {
  /** Path below the root. */
  readonly path: string;
  readonly kind: EntryKind;
}

/** @returns every file, directory and link below a directory, and the directory itself as an empty path */
export function entriesBelow(root: string): Entry[] {
  const names = fs.readdirSync(root, { recursive: true, withFileTypes: true });
  const below = names.map((one): Entry => {
    return { path: relative(root, join(one.parentPath, one.name)), kind: kindOf(one) };
  });
  return [{ path: '', kind: 'directory' } as const, ...below].sort((a, b) => (a.path < b.path ? -1 : 1));
}

function kindOf(entry: fs.Dirent): EntryKind {
  if (entry.isSymbolicLink()) return 'link';
  if (entry.isDirectory()) return 'directory';
  return entry.isFile() ? 'file' : 'other';
}

type Harm = (path: string) => void;

const isRoot = process.getuid?.() === 0;
/** More than any process may read into memory. */
const giantBytes = 3_000_000_000;
/** A user id that this machine does not have. */
const unknownUserId = 54_321;

function replaced(put: Harm): Harm {
  return (path) => {
    fs.rmSync(path, { recursive: true, force: true });
    put(path);
  };
}

const replacements: Readonly<Record<string, Harm>> = {
  removed: (path) => fs.rmSync(path, { recursive: true, force: true }),
  'replaced by a file': replaced((path) => fs.writeFileSync(path, 'in the way\n')),
  'replaced by an empty directory': replaced((path) => fs.mkdirSync(path)),
  'replaced by a FIFO': replaced((path) => execFileSync('mkfifo', [path])),
  'replaced by a link to nowhere': replaced((path) => fs.symlinkSync('/nowhere/at/all', path)),
  'replaced by a link to itself': replaced((path) => fs.symlinkSync(path, path)),
  // The target of a link is not Writ's file: Writ must neither trust it nor write to it.
  'replaced by a link elsewhere': replaced((path) => fs.symlinkSync('/etc/hostname', path)),
  ...(isRoot
    ? { 'replaced by a device': replaced((path) => execFileSync('mknod', [path, 'c', '1', '5'])) }
    : {}),
};

const ofModes: Readonly<Record<string, Harm>> = {
  'made writable for all': (path) => fs.chmodSync(path, 0o777),
  'closed to all': (path) => fs.chmodSync(path, 0),
  ...(isRoot
    ? { 'given to a stranger': (path: string) => fs.chownSync(path, unknownUserId, unknownUserId) }
    : {}),
};

const ofBytes: Readonly<Record<string, Harm>> = {
  emptied: (path) => fs.truncateSync(path, 0),
  halved: (path) => fs.truncateSync(path, Math.floor(fs.statSync(path).size / 2)),
  'a bit turned': (path) => turnBit(path, (size) => Math.floor(size / 2)),
  'a bit turned near its end': (path) => turnBit(path, (size) => size - 3),
  'made a sparse giant': (path) => fs.truncateSync(path, giantBytes),
  'replaced by garbage': (path) => fs.writeFileSync(path, Buffer.alloc(3000, 0xff)),
  'replaced by another JSON': (path) => fs.writeFileSync(path, '{"writ":1}\n'),
};

function turnBit(path: string, place: (size: number) => number): void {
  const bytes = fs.readFileSync(path);
  const at = Math.max(0, place(bytes.length));
  if (bytes.length > 0) bytes[at] = (bytes[at] ?? 0) ^ 1;
  fs.writeFileSync(path, bytes.length > 0 ? bytes : 'x');
}

const harms: Readonly<Record<EntryKind, Readonly<Record<string, Harm>>>> = {
  file: { ...replacements, ...ofModes, ...ofBytes },
  directory: { ...replacements, ...ofModes },
  link: replacements,
  other: { ...replacements, ...ofModes },
};

export interface DamageCase {
  readonly entry: Entry;
  readonly harm: string;
}

/** @returns every damage of every entry, except damages without an effect */
export function damageCases(root: string): DamageCase[] {
  return entriesBelow(root).flatMap((entry) => {
    const names = Object.keys(harms[entry.kind]).filter(
      // The root is the test's own directory; only its mode and its removal are cases.
      (harm) => entry.path !== '' || harm in ofModes || harm === 'removed',
    );
    return names.map((harm) => ({ entry, harm }));
  });
}

/** Applies the damage to the entry below this root. */
export function doHarm(root: string, { entry, harm }: DamageCase): void {
  harms[entry.kind][harm]?.(join(root, entry.path));
}
