// A command's block as a terminal shows it.

export function blockText(block: {
  readonly lines: readonly string[];
  readonly next?: string | undefined;
}): string {
  const next = block.next === undefined ? [] : [`Next: ${block.next}`];
  return [...block.lines, ...next].map((line) => `${line}\n`).join('');
}
