// A command's block as a terminal shows it.
import { docsOf, type ErrorCode } from '../../../src/core/errors.js';

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
