// The output block of a command as a terminal shows it.
import { docsOf, type ErrorCode } from '../../../src/core/errors.js';

/** @returns the lines of the block, then its docs, undo and next lines, each with a line feed */
export function blockText(block: {
  readonly lines: readonly string[];
  readonly next?: string | undefined;
  readonly undo?: string | undefined;
  readonly docs?: ErrorCode | undefined;
}): string {
  const docs = block.docs === undefined ? [] : [`docs: ${docsOf(block.docs)}`];
  const undo = block.undo === undefined ? [] : [`Undo: ${block.undo}`];
  const next = block.next === undefined ? [] : [`Next: ${block.next}`];
  return [...block.lines, ...docs, ...undo, ...next].map((line) => `${line}\n`).join('');
}
