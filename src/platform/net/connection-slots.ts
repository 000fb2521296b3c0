// Limits the connections of a listener of the agent. If all slots are taken, a new client gets the slot of the client that has
// waited longest without a request or after its response. So clients that connect and send nothing cannot block others.
import type { Socket } from 'node:net';

export interface ConnectionSlot {
  /** Marks the slot as answering a request: no other client gets it. */
  claim(): void;
  /** Marks the request as answered: a new client may get the slot. */
  release(): void;
}

export interface ConnectionSlots {
  /** @returns undefined if every slot is answering a request */
  take(socket: Socket): ConnectionSlot | undefined;
  /** @returns the open connections */
  sockets(): readonly Socket[];
}

/**
 * Creates the bound on open connections of a server.
 * @param maxConnections how many connections may be open at the same time
 * @returns `take` admits a socket and returns its slot, which counts as idle until `claim`. If all slots are used, `take`
 *   destroys the socket that is idle the longest; without an idle one it returns undefined, and the caller closes the new
 *   socket. A closed socket frees its slot by itself. `sockets` is empty at first. Throws nothing.
 */
export function createConnectionSlots(maxConnections: number): ConnectionSlots {
  const taken = new Set<Socket>();
  /** The connections that may be closed for a new client, the longest idle first. */
  const idle = new Set<Socket>();
  const leave = (socket: Socket): void => {
    taken.delete(socket);
    idle.delete(socket);
  };
  return {
    take: (socket) => {
      if (taken.size >= maxConnections) {
        const [longest] = idle;
        if (longest === undefined) return undefined;
        leave(longest);
        longest.destroy();
      }
      taken.add(socket);
      idle.add(socket);
      socket.once('close', () => leave(socket));
      return {
        claim: () => void idle.delete(socket),
        release: () => {
          if (taken.has(socket)) idle.add(socket);
        },
      };
    },
    sockets: () => [...taken],
  };
}
