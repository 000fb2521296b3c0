// The lines of Writ's sockets: one JSON object per line of at most 64 kB. The first line in each direction is the greeting
// `{"writ":1,"version":...}`. The protocols define the meaning of the other lines.
import { WritError } from '../errors.js';
import { maxSocketLineBytes } from '../limits.js';

/** Version of the framing. A peer with another version is rejected. */
const socketProtocolNumber = 1;

export type SocketMessage = Readonly<Record<string, unknown>>;

/**
 * @returns the message as one line with its line break
 * @throws WritError MESSAGE_MALFORMED if it is over 64 kB
 */
export function encodeLine(message: object): string {
  const line = JSON.stringify(message);
  const bytes = Buffer.byteLength(line);
  if (bytes > maxSocketLineBytes) {
    const facts = { expected: maxSocketLineBytes, actual: bytes };
    throw new WritError('MESSAGE_MALFORMED', 'a message is too long for the socket', { facts });
  }
  return `${line}\n`;
}

/**
 * @param version of this program, as `0.1.0`
 * @returns the greeting, the first line of a connection
 */
export function helloLine(version: string): string {
  return encodeLine({ writ: socketProtocolNumber, version });
}

/**
 * @returns the version of the peer
 * @throws WritError MESSAGE_MALFORMED for a line that is no greeting of this protocol
 */
export function parseHello(message: SocketMessage): { readonly version: string } {
  const version = message['version'];
  if (message['writ'] !== socketProtocolNumber || typeof version !== 'string' || version.length > 64) {
    const facts = { expected: socketProtocolNumber, actual: String(message['writ']).slice(0, 20) };
    throw new WritError('MESSAGE_MALFORMED', 'the other end does not greet like Writ', { facts });
  }
  return { version };
}

/**
 * @returns a reader that buffers at most one line of 64 kB. Its `push` takes the next bytes and returns the complete messages. It
 *   throws WritError MESSAGE_MALFORMED for a line that is too long, no UTF-8 or no JSON object; the connection cannot be used
 *   afterwards.
 */
export function createLineReader(): { push(chunk: Uint8Array): SocketMessage[] } {
  let parts: Uint8Array[] = [];
  let kept = 0;
  const take = (rest: Uint8Array): Uint8Array => {
    const line = Buffer.concat([...parts, rest]);
    parts = [];
    kept = 0;
    return line;
  };
  return {
    push: (chunk) => {
      const messages: SocketMessage[] = [];
      let start = 0;
      for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
        refuseLong(kept + end - start);
        messages.push(decodeLine(take(chunk.subarray(start, end))));
        start = end + 1;
      }
      kept += chunk.length - start;
      refuseLong(kept);
      if (start < chunk.length) parts.push(Buffer.from(chunk.subarray(start)));
      return messages;
    },
  };
}

const newline = 0x0a;

function refuseLong(bytes: number): void {
  if (bytes <= maxSocketLineBytes) return;
  const facts = { expected: maxSocketLineBytes, actual: bytes };
  throw new WritError('MESSAGE_MALFORMED', 'a line on the socket is too long', { facts });
}

function decodeLine(bytes: Uint8Array): SocketMessage {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new WritError('MESSAGE_MALFORMED', 'a line on the socket is not JSON', { cause });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new WritError('MESSAGE_MALFORMED', 'a line on the socket is not a JSON object');
  }
  return value as SocketMessage;
}
