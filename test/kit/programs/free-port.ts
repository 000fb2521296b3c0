// A port on loopback for a program that cannot report the port that it took, or for a server that returns to its port.
// Each port is reserved for this process by a Unix socket in the abstract namespace, `\0writ-test-port-N`. The system lets
// one process bind such a name and releases it when that process ends, so two test processes never have the same port,
// also from two checkouts. Port 0 does not suit: the system would give the number to another socket between its
// release here and the start of the program. A TCP port can be kept in TIME_WAIT in between, but a DNS server needs
// the same number for UDP, which has no such state. The range is below that of outgoing connections, so the system
// gives none of these ports to a client.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

const lowestPort = 20_000;
const portCount = 12_000;
/** Spreads processes over the range, so that a port is unused for a while after its process ended. */
const portsOfProcess = 40;

let next = (process.pid * portsOfProcess) % portCount;

/**
 * @returns a port that no program uses for TCP or UDP, reserved until this process ends
 * @throws Error if no port of the range is free
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < portCount; tries++) {
    const port = lowestPort + next;
    next = (next + 1) % portCount;
    if ((await reserve(port)) && (await isFree(port))) return port;
  }
  throw new Error(`no free port from ${lowestPort} to ${lowestPort + portCount - 1}`);
}

function reserve(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false));
    server.listen({ path: `\0writ-test-port-${port}` }, () => resolve(true)).unref();
  });
}

/** Another program may use the port. */
async function isFree(port: number): Promise<boolean> {
  return (await isFreeForTcp(port)) && (await isFreeForUdp(port));
}

function isFreeForTcp(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

async function isFreeForUdp(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    socket.bind(port, '127.0.0.1');
    await once(socket, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    socket.close();
  }
}
