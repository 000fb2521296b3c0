// The common part of all workers of the outages: a response over a unix socket with the policy that the process uses. It comes
// from the memory of the process, not from the disk.
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';

/** Listens until the process ends. A crash leaves the socket file of the previous process, so it is removed first. */
export function serveOn(socket: string, answer: () => string): void {
  rmSync(socket, { force: true });
  createServer((_request, response) => response.end(answer())).listen(socket);
}
