// The part that all workers of the outages share: an answer over a unix socket. It says which policy the process uses, and
// comes from the memory of the process, never from the disk.
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';

/** Listens until the process ends. A crash leaves the socket file of the previous process, so it is removed first. */
export function serveOn(socket: string, answer: () => string): void {
  rmSync(socket, { force: true });
  createServer((_request, response) => response.end(answer())).listen(socket);
}
