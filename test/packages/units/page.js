// The part of docs/truth.md about Debian's own units: made from the results, and compared with the page. Pure.

/**
 * Draws the part from the results of each daemon, by its name; `unit` is as systemd shows it.
 * @param {readonly { name: string, what: string }[]} cases
 * @param {ReadonlyMap<string, { unit: string, cells: ReadonlyMap<string, string> }>} played
 */
export function drawUnits(cases, played) {
  const row = (cells) => `| ${cells.join(' | ')} |`;
  const rows = [...played.values()].map(({ unit, cells }) =>
    row([unit, ...cases.map(({ name }) => cells.get(name) ?? '?')]),
  );
  return [
    ...cases.map(({ name, what }) => `- **${name}**: ${what}`),
    '',
    row(['unit of Debian 12', ...cases.map(({ name }) => name)]),
    `|${'---|'.repeat(cases.length + 1)}`,
    ...rows,
  ].join('\n');
}

/** @returns the text between the marks of the part. @throws if the page has none */
export function unitsPart(page) {
  const [, part] = /<!-- units -->\n([\s\S]*?)\n<!-- \/units -->/.exec(page) ?? [];
  if (part === undefined) throw new Error('docs/truth.md has no part units');
  return part;
}
