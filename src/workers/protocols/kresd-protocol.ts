// The control socket of Knot Resolver in binary mode, 5 and 6 alike: bytes of a command, bytes of its answer.
// Pure; what an answer means is the driver's. Facts were read off the real kresd 5.6:
// it sends the prompt `> ` on connect unless started with -q, so nobody may wait for it, and only skip it.

/** 1 MB: far above any verdict, far below the 0x3e20.... that a prompt would be when taken for a length. */
export const maxKresdAnswerBytes = 1_000_000;

/** @param command Lua without a line feed. @returns the mode switch, which has no answer, and the command */
export function encodeKresdCommand(command: string): string {
  return `__binary\n${command}\n`;
}

export type KresdAnswer =
  | { readonly kind: 'text'; readonly text: string }
  /** The length cannot be one: whoever listens there is no kresd. */
  | { readonly kind: 'malformed'; readonly length: number };

const prompt = Buffer.from('> ');
const lengthBytes = 4;

/**
 * Reads one answer: an optional prompt, a big-endian length in 4 bytes, that many bytes of text.
 * @returns a function that takes the next bytes and gives the answer once it is complete; what follows it is not ours
 */
export function createKresdReader(): (chunk: Uint8Array) => KresdAnswer | undefined {
  const chunks: Uint8Array[] = [];
  let received = 0;
  let needed = prompt.length;
  return (chunk) => {
    chunks.push(chunk);
    received += chunk.length;
    // Joined only when enough has come, or a megabyte sent byte by byte would be copied a million times.
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
