// Leaves a socket file behind that nobody listens on, as a process killed with SIGKILL does.
import { renameSync } from 'node:fs';
import { createServer } from 'node:net';

/** Creates a socket file at the path on which no process listens. */
export async function leaveStaleSocket(path: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(`${path}.live`, resolve));
  // Closing unlinks the name the server was bound to: under another name the file stays.
  renameSync(`${path}.live`, path);
  await new Promise<void>((resolve) => server.close(() => resolve()));
}
