// How many connections a listener of the agent has at a time, and whose place a newcomer gets where all are taken: that of who
// asked nothing yet, or was answered, the longest first. So who connects and says nothing keeps nobody out. Owns no bytes.
import type { Socket } from 'node:net';

export interface Place {
  /** Its request is being answered: nobody else gets this place. */
  claim(): void;
  /** It was answered: a newcomer may have it. */
  release(): void;
}

export interface ConnectionPlaces {
  /** @returns undefined where everybody is being answered */
  take(socket: Socket): Place | undefined;
  /** Whoever is connected. */
  sockets(): readonly Socket[];
}

export function createConnectionPlaces(maxConnections: number): ConnectionPlaces {
  const taken = new Set<Socket>();
  /** Those of `taken` who can be sent away, in the order in which they came to that. */
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
