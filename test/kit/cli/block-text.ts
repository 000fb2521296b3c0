// A command's block as a terminal shows it.

export function blockText(block: {
  readonly lines: readonly string[];
  readonly next?: string | undefined;
  readonly undo?: string | undefined;
}): string {
  const undo = block.undo === undefined ? [] : [`Undo: ${block.undo}`];
  const next = block.next === undefined ? [] : [`Next: ${block.next}`];
  return [...block.lines, ...undo, ...next].map((line) => `${line}\n`).join('');
}
