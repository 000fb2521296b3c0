// Creates the answers of drivers, and the error for members that cannot be listed. Limits each text, and replaces control
// characters in it: the text of a worker is shown to people, and such characters could control a terminal.
import { type ErrorFacts, WritError } from '../../core/errors.js';
import type { Answer } from './driver.js';

const maxAnswerBytes = 2000;

export const confirmed = (text: string): Answer => ({ kind: 'confirmed', text: headOf(text) });
export const notified = (text: string): Answer => ({ kind: 'notified', text: headOf(text) });
export const refused = (text: string): Answer => ({ kind: 'refused', text: headOf(text) });
export const unreachable = (text: string): Answer => ({ kind: 'unreachable', text: headOf(text) });
/** A deferral: the worker was reached, and is busy. */
export const notNow = (text: string): Answer => ({ ...unreachable(`not now: ${text}`), notNow: 'yes' });

/** @returns the end of a text on one line, because commands print the error last */
export function tailOf(text: string, maxCharacters: number): string {
  const line = printable(text);
  return line.length > maxCharacters ? `...${line.slice(-maxCharacters)}` : line;
}

function headOf(text: string): string {
  const line = printable(text);
  if (Buffer.byteLength(line) <= maxAnswerBytes) return line;
  // A cut character becomes a replacement character of 3 bytes, which fits within the limit.
  return `${Buffer.from(line)
    .subarray(0, maxAnswerBytes - 6)
    .toString('utf8')}...`;
}

function printable(text: string): string {
  return (
    text
      .split('\n')
      // Without a regular expression for spaces before a line end: 64,000 spaces of a worker would take seconds.
      .map((line) => line.trim())
      .filter((line) => line !== '')
      .join(' | ')
      .replaceAll(/\p{C}/gu, '\uFFFD')
  );
}

/** @returns the error for members that cannot be listed, so that no worker counts as departed */
export function unlisted(message: string, facts: ErrorFacts, cause?: unknown): WritError {
  return new WritError('WORKER_UNREACHABLE', message, { facts, cause });
}
