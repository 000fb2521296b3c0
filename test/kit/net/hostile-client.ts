// Connections of hostile clients. The answers are read only on request of a test.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/**
 * @param from a source address of this machine, as all of 127.0.0.0/8
 * @returns the connection after the text is sent
 */
export async function hostileClient(url: string, text: string, from?: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({
    port: Number(port),
    host: hostname,
    ...(from === undefined ? {} : { localAddress: from }),
  });
  // The server may reject or reset the connection.
  socket.on('error', () => undefined);
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  if (text !== '' && socket.writable) await new Promise((resolve) => socket.write(text, resolve));
  return socket;
}

/** @returns open connections, each of which has sent the text */
export async function hostileClients(url: string, text: string, count: number): Promise<Socket[]> {
  return Promise.all(Array.from({ length: count }, () => hostileClient(url, text)));
}

/** Opens each connection from another address. */
export async function manyClients(url: string, text: string, count: number): Promise<Socket[]> {
  const from = (index: number): string => `127.7.${index >> 8}.${index & 255}`;
  return Promise.all(Array.from({ length: count }, (_, index) => hostileClient(url, text, from(index))));
}

/** Reads the first bytes of an answer and resets the connection. */
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
