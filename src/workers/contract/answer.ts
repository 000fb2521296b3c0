// Makes the answers of drivers, and the error where they cannot say who their workers are. Owns their bound and their safety:
// what a worker wrote is shown to people, so control characters, which could drive a terminal, are replaced here once for
// all drivers.
import { type ErrorFacts, WritError } from '../../core/errors.js';
import type { Answer } from './driver.js';

const maxAnswerBytes = 2000;

export const confirmed = (text: string): Answer => ({ kind: 'confirmed', text: headOf(text) });
export const notified = (text: string): Answer => ({ kind: 'notified', text: headOf(text) });
export const refused = (text: string): Answer => ({ kind: 'refused', text: headOf(text) });
export const unreachable = (text: string): Answer => ({ kind: 'unreachable', text: headOf(text) });
/** It was reached, and said that it is busy. */
export const notNow = (text: string): Answer => ({ ...unreachable(`not now: ${text}`), notNow: 'yes' });

/** @returns the end of a text, where commands say what went wrong, on one line */
export function tailOf(text: string, maxCharacters: number): string {
  const line = printable(text);
  return line.length > maxCharacters ? `...${line.slice(-maxCharacters)}` : line;
}

function headOf(text: string): string {
  const line = printable(text);
  if (Buffer.byteLength(line) <= maxAnswerBytes) return line;
  // A character that the cut went through becomes a replacement character of 3 bytes, for which there is room.
  return `${Buffer.from(line)
    .subarray(0, maxAnswerBytes - 6)
    .toString('utf8')}...`;
}

function printable(text: string): string {
  return (
    text
      .split('\n')
      // Not by one pattern: on 64,000 spaces of a worker, one that wants a line end behind them runs for seconds.
      .map((line) => line.trim())
      .filter((line) => line !== '')
      .join(' | ')
      .replaceAll(/\p{C}/gu, '\uFFFD')
  );
}

/** Nobody can say who the workers are: none of them is gone. */
export function unlisted(message: string, facts: ErrorFacts, cause?: unknown): WritError {
  return new WritError('WORKER_UNREACHABLE', message, { facts, cause });
}
