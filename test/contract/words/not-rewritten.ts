// The documents that still use words of the list. It only shrinks: a page leaves it when it is rewritten.
export const notRewritten: readonly string[] = [];
