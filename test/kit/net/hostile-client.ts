// Connections of clients that mean no good: what they send is theirs, and nothing that comes back is read unless asked for.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** @returns the connection, once what it has to say is sent */
export async function hostileClient(url: string, text: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  // It is refused or cut off: that is what it is for.
  socket.on('error', () => undefined);
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  if (text !== '' && socket.writable) await new Promise((resolve) => socket.write(text, resolve));
  return socket;
}

export async function hostileClients(url: string, text: string, count: number): Promise<Socket[]> {
  return Promise.all(Array.from({ length: count }, () => hostileClient(url, text)));
}

/** Reads the first bytes of an answer and resets the connection: the rest has nobody to go to. */
export async function resetAfterFirstBytes(socket: Socket): Promise<void> {
  if (!socket.destroyed) await Promise.race([once(socket, 'data'), once(socket, 'close')]);
  socket.resetAndDestroy();
}

export function getRequest(path: string): string {
  return `GET /${path} HTTP/1.1\r\nHost: test\r\n\r\n`;
}
