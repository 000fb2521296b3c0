// A TCP port on loopback that nobody uses just now, for programs that cannot say which one they took, and for servers that
// come back on the port that they had. Below the range from which the system takes the ports of connections: a port that
// is free for a moment must not become somebody's other end.
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

const lowestPort = 20_000;
const highestPort = 32_000;
const maxTries = 50;

export async function freePort(): Promise<number> {
  for (let tries = 0; tries < maxTries; tries++) {
    const port = randomInt(lowestPort, highestPort);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port between ${lowestPort} and ${highestPort}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
