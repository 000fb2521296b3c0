// Makes untrusted text safe to print: characters that reverse the text, are invisible or control a terminal are escaped. Pure.

// Format characters reverse text or are invisible; the default ignorable ones are invisible, though some are letters.
export const unprintable = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu;

/** @returns the text with control, format and invisible characters as \u{...} */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}
