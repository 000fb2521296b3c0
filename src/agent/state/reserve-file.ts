// The space that a way back needs on a full disk, taken while there is some. Owns two files of the state directory: one that
// is removed to free a megabyte and an inode, and one whose blocks take a journal in place. Decides nothing.
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { WritError } from '../../core/errors.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { lookAt } from '../../platform/read-file.js';
import type { HostPaths } from './paths.js';

type ReservePaths = Pick<HostPaths, 'reserve' | 'journalReserve'>;

/** Ledger, refusals and journal of a host are far smaller, also where each is there twice until its rename. */
export const reserveBytes = 1_048_576;
/** A journal with the longest text of a refusal. */
export const journalReserveBytes = 16_384;

/**
 * Makes what is missing, with blocks that are written: a sparse file keeps no space free, nor do zeros under compression.
 * @throws WritError DISK_*
 */
export function ensureReserve({ reserve, journalReserve }: ReservePaths, durable: DurableFs): void {
  // The smaller one first: it is what a crash needs.
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
  const found = lookAt(path);
  return found?.isFile() === true && found.size === bytes;
}

/** @returns true where a reserve was there and is free space now */
export function releaseReserve({ reserve }: ReservePaths, durable: DurableFs): boolean {
  if (lookAt(reserve) === undefined) return false;
  try {
    durable.removeFile('reserve.remove', reserve);
  } catch (error) {
    // Its directory may refuse to be flushed: the space is free even so.
    if (!(error instanceof WritError)) throw error;
  }
  return lookAt(reserve) === undefined;
}

/**
 * Puts a text in the place of a file by blocks and an inode that are there: no other process can take them meanwhile.
 * @throws WritError DISK_*, also where there is no reserve or the text is larger than it
 */
export function writeIntoReserve(
  { journalReserve }: ReservePaths,
  durable: DurableFs,
  file: { readonly path: string; readonly text: string },
): void {
  const bytes = Buffer.from(file.text);
  if (!hasBlocks(journalReserve, journalReserveBytes) || bytes.length > journalReserveBytes) {
    const facts = { op: 'reserve.open', path: journalReserve };
    throw new WritError(
      'DISK_FULL',
      `reserve.open: ${journalReserve} has no room for ${bytes.length} bytes`,
      { facts },
    );
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
