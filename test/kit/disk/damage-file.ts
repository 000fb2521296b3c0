// Damages one file on a disk: one bit, or its type.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';

/** Inverts the lowest bit of one byte. @param at offset of the byte from 0 */
export function flipBit(path: string, at: number): void {
  const bytes = fs.readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  fs.writeFileSync(path, bytes);
}

/** Replaces the file by a FIFO, on which a reader blocks. */
export function putFifo(path: string): void {
  fs.rmSync(path);
  execFileSync('mkfifo', [path]);
}
