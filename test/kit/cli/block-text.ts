// A command's block as a terminal shows it.

export function blockText(block: {
  readonly lines: readonly string[];
  readonly next?: string | undefined;
  readonly undo?: string | undefined;
  readonly docs?: string | undefined;
}): string {
  const docs = block.docs === undefined ? [] : [`docs: ${block.docs}`];
  const undo = block.undo === undefined ? [] : [`Undo: ${block.undo}`];
  const next = block.next === undefined ? [] : [`Next: ${block.next}`];
  return [...block.lines, ...docs, ...undo, ...next].map((line) => `${line}\n`).join('');
}
