// Text of others, shown as what it is: what would turn the text, hide in it or steer a terminal is written out. Pure; knows
// nothing of terminals, HTML or widths.

// Format characters turn the text or hide in it; the default ignorable ones show nothing, though some are letters.
export const unprintable = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu;

/** Control, format and invisible characters as \u{...}: what is shown is what is there, and all that is there. */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}
