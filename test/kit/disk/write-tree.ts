// Writes a small tree of files for a test: text, executable bits and directories, by path.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * @param files content by path; a path that ends in `/` makes an empty directory, one that begins with `+`
 *   makes the file executable
 * @returns the directory
 */
export function writeTree(directory: string, files: Readonly<Record<string, string | Uint8Array>>): string {
  mkdirSync(directory, { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    const executable = name.startsWith('+');
    const path = join(directory, executable ? name.slice(1) : name);
    if (name.endsWith('/')) {
      mkdirSync(path, { recursive: true });
      continue;
    }
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    if (executable) chmodSync(path, 0o755);
  }
  return directory;
}
