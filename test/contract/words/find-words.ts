// Finds the words of the list in prose. A word that runs over the end of a line is found too. Owns no list.
import type { Word } from './word-list.js';

export interface Finding {
  readonly line: number;
  readonly found: string;
  readonly say: string;
}

/** @param prose as prose.ts makes it; lines are counted from 1 */
export function findWords(prose: string, words: readonly Word[]): readonly Finding[] {
  const flat = prose.replace(/\n(?: *[>#*-]+)? */g, (gap) => ' '.repeat(gap.length));
  return words
    .flatMap((word) =>
      findWord(flat, word).map(({ at, found }) => ({ line: lineAt(prose, at), found, say: word.say })),
    )
    .sort((a, b) => a.line - b.line);
}

function findWord(
  flat: string,
  { pattern, except = [] }: Word,
): { readonly at: number; readonly found: string }[] {
  const single = flat.replace(/ {2,}/g, (gap) => ` ${'\0'.repeat(gap.length - 1)}`);
  const { text, places } = squeeze(single);
  const allowed = except.flatMap(({ phrase }) =>
    [...text.matchAll(phrase)].map((match) => ({ from: match.index, to: match.index + match[0].length })),
  );
  return [...text.matchAll(pattern)]
    .filter((match) => !allowed.some(({ from, to }) => from <= match.index && match.index < to))
    .map((match) => ({ at: places[match.index] ?? 0, found: match[0] }));
}

/** Drops the filled gaps, and remembers where each character was. */
function squeeze(filled: string): { readonly text: string; readonly places: readonly number[] } {
  const places = [...filled.matchAll(/[^\0]/g)].map((match) => match.index);
  return { text: filled.replaceAll('\0', ''), places };
}

function lineAt(text: string, at: number): number {
  return text.slice(0, at).split('\n').length;
}
