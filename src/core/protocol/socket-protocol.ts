// Lines as both of Writ's sockets speak them: one JSON object a line of at most 64 kB, the first one in each
// direction `{"writ":1,"version":...}`. Owns framing and greeting; what the objects mean is the protocol's.
import { WritError } from '../errors.js';
import { maxSocketLineBytes } from '../limits.js';

/** Version of the framing itself; a peer with another number cannot be understood. */
const socketProtocolNumber = 1;

export type SocketMessage = Readonly<Record<string, unknown>>;

/** @returns the message as one line with its newline. @throws WritError MESSAGE_MALFORMED when it is over 64 kB */
export function encodeLine(message: object): string {
  const line = JSON.stringify(message);
  const bytes = Buffer.byteLength(line);
  if (bytes > maxSocketLineBytes) {
    const facts = { expected: maxSocketLineBytes, actual: bytes };
    throw new WritError('MESSAGE_MALFORMED', 'a message is too long for the socket', { facts });
  }
  return `${line}\n`;
}

/** @param version version of this program, as `0.1.0`. @returns the first line of a connection */
export function helloLine(version: string): string {
  return encodeLine({ writ: socketProtocolNumber, version });
}

/** @returns the peer's version. @throws WritError MESSAGE_MALFORMED when this is no greeting of our protocol */
export function parseHello(message: SocketMessage): { readonly version: string } {
  const version = message['version'];
  if (message['writ'] !== socketProtocolNumber || typeof version !== 'string' || version.length > 64) {
    const facts = { expected: socketProtocolNumber, actual: String(message['writ']).slice(0, 20) };
    throw new WritError('MESSAGE_MALFORMED', 'the other end does not greet like Writ', { facts });
  }
  return { version };
}

/**
 * @returns a reader that never keeps more than one line of at most 64 kB. Its `push` takes the next bytes and gives back
 * the messages they complete; it throws WritError MESSAGE_MALFORMED for a line that is too long, no UTF-8, or no JSON
 * object, and the connection is of no use after it
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
