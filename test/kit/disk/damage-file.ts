// What goes wrong with one file on a disk: a bit of it, or what it is. Whose file it is, is the test's.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';

/** Turns the lowest bit of one byte. @param at of the byte, from 0 */
export function flipBit(path: string, at: number): void {
  const bytes = fs.readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  fs.writeFileSync(path, bytes);
}

/** What waits for ever where somebody opens it to read. */
export function putFifo(path: string): void {
  fs.rmSync(path);
  execFileSync('mkfifo', [path]);
}
