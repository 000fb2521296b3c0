// Copies of repositories that were made once, because making keys and signing takes long. Bytes and modes are in memory. A
// test that needs its own keys makes its own repository.
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { InitResult } from '../../../src/publisher/root/init-repository.js';

/** Directories of a repository and its keys. */
export interface Places {
  readonly directory: string;
  readonly keys: string;
}

interface KeptFile {
  readonly path: string;
  readonly mode: number;
  /** Undefined for a directory. */
  readonly bytes?: Buffer;
}

interface Kept {
  readonly places: Places;
  readonly init: InitResult;
  readonly files: Readonly<Record<keyof Places, readonly KeptFile[]>>;
}

/** @returns a function that copies a repository, and makes it at the first use; `name` identifies the repository */
export function repositoryStock() {
  const stock = new Map<string, Kept>();
  return (name: string, places: Places, make: () => InitResult): InitResult => {
    const kept = stock.get(name);
    // Existing files are left, because the publisher must refuse them.
    if (kept === undefined || fs.existsSync(places.directory) || fs.existsSync(places.keys)) {
      const init = make();
      stock.set(name, {
        places,
        init,
        files: { directory: read(places.directory), keys: read(places.keys) },
      });
      return init;
    }
    write(places.directory, kept.files.directory);
    write(places.keys, kept.files.keys);
    return moved(kept, places);
  };
}

function read(root: string): KeptFile[] {
  const names = ['.', ...fs.readdirSync(root, { recursive: true, encoding: 'utf8' })];
  return names.map((path) => {
    const whole = join(root, path);
    const stat = fs.lstatSync(whole);
    const mode = stat.mode & 0o7777;
    return stat.isDirectory() ? { path, mode } : { path, mode, bytes: fs.readFileSync(whole) };
  });
}

function write(root: string, files: readonly KeptFile[]): void {
  for (const { path, mode, bytes } of files) {
    const whole = join(root, path);
    if (bytes === undefined) fs.mkdirSync(whole, { recursive: true });
    else fs.writeFileSync(whole, bytes);
    fs.chmodSync(whole, mode);
  }
}

/** Replaces the paths of the first repository. */
function moved({ places: from, init }: Kept, to: Places): InitResult {
  const path = (one: string): string =>
    one.startsWith(`${from.keys}/`)
      ? `${to.keys}${one.slice(from.keys.length)}`
      : `${to.directory}${one.slice(from.directory.length)}`;
  return {
    ...init,
    rootPath: path(init.rootPath),
    roles: init.roles.map((role) => ({ ...role, keyFiles: role.keyFiles.map(path) })),
  };
}
