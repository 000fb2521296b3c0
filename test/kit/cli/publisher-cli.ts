// The publisher's commands in a directory with its own repository.
import { systemClock } from '../../../src/platform/time/clock.js';
import type { TempDir } from '../disk/temp-dir.js';
import { type SampleRepositoryOptions, sampleRepository } from '../repository/sample-repository.js';
import { runWrit, type WritRun } from './run-writ.js';

export const v1 = { 'block.rpz': 'one\n', 'views/eu.yaml': 'eu: 1\n' };

/** Runs the command in the directory. */
export function writ(dir: TempDir, ...args: readonly string[]): Promise<WritRun> {
  return runWrit(args, { cwd: dir.path });
}

/** @returns a new repository in the directory with one root key and the real clock */
export function madeHere(dir: TempDir, options: Pick<SampleRepositoryOptions, 'signers'> = {}) {
  return sampleRepository(dir, { clock: systemClock, rootKeys: 1, rootThreshold: 1, ...options });
}
