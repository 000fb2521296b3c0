// Connections of clients that mean no good: what they send is theirs, and nothing that comes back is read unless asked for.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/**
 * @param from an address of this machine; all of 127.0.0.0/8 are
 * @returns the connection, once what it has to say is sent
 */
export async function hostileClient(url: string, text: string, from?: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({
    port: Number(port),
    host: hostname,
    ...(from === undefined ? {} : { localAddress: from }),
  });
  // It is refused or cut off: that is what it is for.
  socket.on('error', () => undefined);
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  if (text !== '' && socket.writable) await new Promise((resolve) => socket.write(text, resolve));
  return socket;
}

/** @returns open connections, each of which has sent the text */
export async function hostileClients(url: string, text: string, count: number): Promise<Socket[]> {
  return Promise.all(Array.from({ length: count }, () => hostileClient(url, text)));
}

/** Each from another address. */
export async function manyClients(url: string, text: string, count: number): Promise<Socket[]> {
  const from = (index: number): string => `127.7.${index >> 8}.${index & 255}`;
  return Promise.all(Array.from({ length: count }, (_, index) => hostileClient(url, text, from(index))));
}

/** Reads the first bytes of an answer and resets the connection: the rest has nobody to go to. */
export async function resetAfterFirstBytes(socket: Socket): Promise<void> {
  if (!socket.destroyed) await Promise.race([once(socket, 'data'), once(socket, 'close')]);
  socket.resetAndDestroy();
}

/**
 * @param path without its first slash
 * @returns the text of a complete request
 */
export function getRequest(path: string): string {
  return `GET /${path} HTTP/1.1\r\nHost: test\r\n\r\n`;
}
