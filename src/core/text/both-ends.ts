// Cuts long output of a command in the middle: the beginning describes the work, and compilers print the error last. A mark shows
// how much was removed. Pure.

/** @returns the lines, or `maxLines` of them: a third from the beginning and the others from the end */
export function bothEndsOfLines(lines: readonly string[], maxLines: number): readonly string[] {
  if (lines.length <= maxLines) return lines;
  const first = Math.floor(maxLines / 3);
  const left = lines.length - maxLines;
  const mark = `(${left} more ${left === 1 ? 'line' : 'lines'})`;
  return [...lines.slice(0, first), mark, ...lines.slice(first + left)];
}

/** @returns the text, or both its ends with the mark between them, at most `maxCharacters` in total */
export function bothEndsOfText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  const available = maxCharacters - `\n(${text.length} more characters)\n`.length;
  const first = Math.floor(available / 3);
  const left = text.length - available;
  return `${text.slice(0, first)}\n(${left} more characters)\n${text.slice(first + left)}`.slice(
    0,
    maxCharacters,
  );
}
