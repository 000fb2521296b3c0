// How many values a JSON text has, counted before it is parsed: 260 kB of empty objects become a tree of several megabytes. Pure.

const [quote, backslash] = ['"', '\\'].map((text) => text.charCodeAt(0));
const separators = new Set([...'{[,'].map((text) => text.charCodeAt(0)));

/** Of a body of 256 kB: a report with 1,000 bundles has about 20,000. */
export const maxJsonValues = 65_536;

/**
 * Counts each `{`, `[` and `,` outside of strings: the values of a document are at most twice as many, and one more.
 *
 * @param json may be anything: what is no JSON has a count too
 */
export function countJsonValues(json: Uint8Array): number {
  let count = 0;
  let isInString = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at] as number;
    if (byte === quote) isInString = !isInString;
    else if (isInString) at += byte === backslash ? 1 : 0;
    else if (separators.has(byte)) count++;
  }
  return count;
}
