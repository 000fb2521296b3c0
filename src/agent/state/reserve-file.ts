// Reserves the space that a restore needs on a full disk, while the disk still has space. Owns two files of the state
// directory: one is removed to free a megabyte and an inode, the other one is overwritten in place by a journal.
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { WritError } from '../../core/errors.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { lstatIfPresent } from '../../platform/read-file.js';
import type { HostPaths } from './paths.js';

type ReservePaths = Pick<HostPaths, 'reserve' | 'journalReserve'>;

/** Ledger, refusals and journal together are far smaller, even while a temporary file duplicates each. */
export const reserveBytes = 1_048_576;
/** Fits a journal with the longest text of a refusal. */
export const journalReserveBytes = 16_384;

/**
 * Creates the missing reserve files with random bytes, because neither a sparse file nor compressed zeros reserve space.
 * @throws WritError DISK_*
 */
export function ensureReserve({ reserve, journalReserve }: ReservePaths, durable: DurableFs): void {
  // The smaller one first: recovery from a crash depends on the journal.
  for (const [path, bytes] of [
    [journalReserve, journalReserveBytes] as const,
    [reserve, reserveBytes] as const,
  ]) {
    if (hasBlocks(path, bytes)) continue;
    durable.removeFile('reserve.remove', path);
    durable.createFile('reserve.create', path, randomBytes(bytes), 0o600);
  }
}

function hasBlocks(path: string, bytes: number): boolean {
  const found = lstatIfPresent(path);
  return found?.isFile() === true && found.size === bytes;
}

/** Removes the reserve file. @returns true if it existed, so that its space is free now */
export function releaseReserve({ reserve }: ReservePaths, durable: DurableFs): boolean {
  if (lstatIfPresent(reserve) === undefined) return false;
  try {
    durable.removeFile('reserve.remove', reserve);
  } catch (error) {
    // The flush of the directory may fail after the removal: the space is free even so.
    if (!(error instanceof WritError)) throw error;
  }
  return lstatIfPresent(reserve) === undefined;
}

/**
 * Replaces a file by overwriting the journal reserve and renaming it. It needs no new block or inode, so no other process can
 * take the space meanwhile.
 * @throws WritError DISK_*, also if the reserve is missing or the text is larger than the reserve
 */
export function writeIntoReserve(
  { journalReserve }: ReservePaths,
  durable: DurableFs,
  file: { readonly path: string; readonly text: string },
): void {
  const bytes = Buffer.from(file.text);
  if (!hasBlocks(journalReserve, journalReserveBytes) || bytes.length > journalReserveBytes) {
    const facts = { op: 'reserve.open', path: journalReserve };
    throw new WritError('DISK_FULL', `reserve.open: ${journalReserve} does not fit ${bytes.length} bytes`, {
      facts,
    });
  }
  const descriptor = durable.openKept('reserve.open', journalReserve, 0o600);
  try {
    const open = { descriptor, path: journalReserve };
    durable.write('reserve.write', open, bytes, 0);
    durable.truncate('reserve.truncate', open, bytes.length);
    durable.flushDescriptor('reserve.flush', descriptor, journalReserve);
  } finally {
    fs.closeSync(descriptor);
  }
  durable.rename('reserve.place', journalReserve, file.path);
}
