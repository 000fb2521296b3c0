// The stored inputs of a target, one file each, named by their digest: inputs that reached new code, and earlier faults.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../kit/sources/source-files.js';

const root = join(projectRoot, 'test/fuzz/corpus');

export function readCorpus(target: string): readonly Buffer[] {
  const directory = join(root, target);
  return readdirSync(directory)
    .sort()
    .map((name) => readFileSync(join(directory, name)));
}

/** @returns the path of the stored input, below the project */
export function keepInput(target: string, input: Buffer): string {
  const name = createHash('sha256').update(input).digest('hex').slice(0, 16);
  mkdirSync(join(root, target), { recursive: true });
  writeFileSync(join(root, target, name), input);
  return `test/fuzz/corpus/${target}/${name}`;
}
