// Writes the files of a simulated repository into a directory, for programs that read it as file://.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { RepositorySimulator } from './repository-simulator.js';

/** @returns the URL of the directory, which has exactly the current files */
export function writeSimulated(repository: RepositorySimulator, directory: string): string {
  rmSync(directory, { recursive: true, force: true });
  for (const [path, bytes] of repository.files) {
    const place = join(directory, path);
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, bytes);
  }
  return pathToFileURL(directory).href;
}
