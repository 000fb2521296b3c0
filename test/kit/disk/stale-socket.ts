// Leaves a socket file without a listener, as a process killed with SIGKILL does.
import { renameSync } from 'node:fs';
import { createServer } from 'node:net';

/** Creates a socket file at the path on which no process listens. */
export async function leaveStaleSocket(path: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(`${path}.live`, resolve));
  // A close unlinks the bound name, so that the file stays under another name.
  renameSync(`${path}.live`, path);
  await new Promise<void>((resolve) => server.close(() => resolve()));
}
