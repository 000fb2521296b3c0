// All published releases and all damage on purpose, in a file of JSON lines. The driver appends a line before it acts, and
// every reader reads the new lines. With it a reader decides whether a tree is exactly one published release.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';

/** `refused` by a check: must never be active. `nacked` by a worker: may be active for a moment. */
export type ReleaseKind = 'good' | 'refused' | 'nacked';

export type KnownLine =
  | { readonly type: 'release'; readonly bundle: string; readonly digest: string; readonly kind: ReleaseKind }
  /** A tree or generation directory that the driver has damaged: it never becomes intact again. */
  | { readonly type: 'tainted'; readonly path: string }
  /** The link `current` of this policy directory is damaged on purpose, or repaired. */
  | { readonly type: 'link'; readonly policy: string; readonly state: 'damaged' | 'whole' };

export function appendKnown(file: string, line: KnownLine): void {
  fs.appendFileSync(file, `${JSON.stringify(line)}\n`);
}

export class KnownReleases {
  readonly #file: string;
  #readBytes = 0;
  readonly #kinds = new Map<string, ReleaseKind>();
  readonly #tainted = new Set<string>();
  readonly #damagedLinks = new Set<string>();

  constructor(file: string) {
    this.#file = file;
  }

  /** Reads the lines that were appended since the last call. */
  refresh(): void {
    const fd = fs.openSync(this.#file, 'r');
    try {
      const bytes = Buffer.alloc(Math.max(fs.fstatSync(fd).size - this.#readBytes, 0));
      const count = fs.readSync(fd, bytes, 0, bytes.length, this.#readBytes);
      const completeBytes = bytes.subarray(0, count).lastIndexOf('\n') + 1;
      this.#readBytes += completeBytes;
      for (const line of bytes.toString('utf8', 0, completeBytes).split('\n')) {
        if (line !== '') this.#note(JSON.parse(line) as KnownLine);
      }
    } finally {
      fs.closeSync(fd);
    }
  }

  #note(line: KnownLine): void {
    if (line.type === 'release') this.#kinds.set(`${line.bundle} ${line.digest}`, line.kind);
    else if (line.type === 'tainted') this.#tainted.add(line.path);
    else if (line.state === 'damaged') this.#damagedLinks.add(line.policy);
    else this.#damagedLinks.delete(line.policy);
  }

  kindOf(bundle: string, digest: string): ReleaseKind | undefined {
    return this.#kinds.get(`${bundle} ${digest}`);
  }

  isTainted(path: string): boolean {
    return this.#tainted.has(path);
  }

  isLinkDamaged(policy: string): boolean {
    return this.#damagedLinks.has(policy);
  }
}

/** @returns a digest of all paths, executable bits and contents of the tree, and its number of files */
export function digestTree(tree: string): { readonly digest: string; readonly files: number } {
  const all = createHash('sha256');
  let files = 0;
  const walk = (directory: string, below: string): void => {
    const entries = fs.readdirSync(directory, { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(directory, entry.name);
      const name = `${below}${entry.name}`;
      if (entry.isDirectory()) {
        walk(path, `${name}/`);
        continue;
      }
      files += 1;
      const isExecutable = (fs.lstatSync(path).mode & 0o111) !== 0;
      const content = createHash('sha256').update(fs.readFileSync(path)).digest('hex');
      all.update(`${name} ${entry.isFile()} ${isExecutable} ${content}\n`);
    }
  };
  walk(tree, '');
  return { digest: all.digest('hex'), files };
}

/** @returns the number of files in the tree from each release: every file begins with `BUNDLE TOKEN PATH` */
export function describeTree(tree: string): string {
  const counts = new Map<string, number>();
  try {
    for (const entry of fs.readdirSync(tree, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const head = fs.readFileSync(join(entry.parentPath, entry.name), 'utf8').slice(0, 60);
      const owner = head.split(' ').slice(0, 2).join(' ');
      counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
  } catch (error) {
    counts.set(String(error), 1);
  }
  return [...counts].map(([owner, count]) => `${count} of ${owner}`).join(', ');
}
