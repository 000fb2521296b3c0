// Untrusted text on a terminal: escapes characters that move the cursor or change the direction of text, and counts widths in columns.
// Pure.
import { unprintable } from '../../core/text/printable.js';

/** @returns JSON of the same value: JSON.stringify leaves U+007F to U+009F as they are, and a terminal obeys them */
export function printableJson(value: object): string {
  return JSON.stringify(value).replace(unprintable, (character) =>
    // JSON knows no escape beyond U+FFFF but that of both surrogates.
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** Characters of two columns: the wide and full-width ones of Unicode's East Asian Width (UAX 11), and pictures. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Combining marks, which take no column. */
const widthless = /[\p{Mn}\p{Me}\p{Cf}]/u;

function widthOf(character: string): number {
  // The common case, without a table.
  if (character < '\u0300') return 1;
  if (widthless.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** @param text printable. @returns columns that it takes */
export function columnsOf(text: string): number {
  return [...text].reduce((sum, character) => sum + widthOf(character), 0);
}

/** @returns as much of a printable text as `columns` hold */
export function cutToColumns(text: string, columns: number): string {
  let left = columns;
  const shown = [...text].findIndex((character) => {
    left -= widthOf(character);
    return left < 0;
  });
  return shown === -1 ? text : [...text].slice(0, shown).join('');
}
