// The control socket of Knot Resolver 5 and 6 in binary mode: encodes commands and parses answers. Pure; the driver judges answers.
// Verified with kresd 5.6: it sends the prompt `> ` on connect unless started with -q, so that a client must skip a prompt and
// never wait for it.

/** 1 MB: more than any verdict, and less than 0x3e20...., which is a prompt that is read as a length. */
export const maxKresdAnswerBytes = 1_000_000;

/** @param command Lua without a line feed. @returns the command after the switch to binary mode, which has no answer */
export function encodeKresdCommand(command: string): string {
  return `__binary\n${command}\n`;
}

export type KresdAnswer =
  | { readonly kind: 'text'; readonly text: string }
  /** The length is impossible, so the listening program is not kresd. */
  | { readonly kind: 'malformed'; readonly length: number };

const prompt = Buffer.from('> ');
const lengthBytes = 4;

/**
 * Parses one answer: an optional prompt, a big-endian length in 4 bytes, and as many bytes of text.
 * @returns a function that takes the next bytes, and returns the answer once it is complete; it ignores later bytes
 */
export function createKresdReader(): (chunk: Uint8Array) => KresdAnswer | undefined {
  const chunks: Uint8Array[] = [];
  let received = 0;
  let needed = prompt.length;
  return (chunk) => {
    chunks.push(chunk);
    received += chunk.length;
    // Join the chunks only when enough bytes arrived. Otherwise a megabyte sent byte by byte would be copied a million times.
    if (received < needed) return undefined;
    const bytes = Buffer.concat(chunks);
    chunks.splice(0, chunks.length, bytes);
    const start = bytes.subarray(0, prompt.length).equals(prompt) ? prompt.length : 0;
    needed = start + lengthBytes;
    if (received < needed) return undefined;
    const length = bytes.readUInt32BE(start);
    if (length > maxKresdAnswerBytes) return { kind: 'malformed', length };
    needed += length;
    if (received < needed) return undefined;
    return { kind: 'text', text: bytes.subarray(needed - length, needed).toString('utf8') };
  };
}
