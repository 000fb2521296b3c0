// A native worker of a simulated host: it acknowledges notifications, or fails as workers do. It connects only when a caller
// requests it.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type RawWorker, rawWorker } from '../../kit/workers/raw-worker.js';
import { bundles } from './simulated-publisher.js';

export const workerBehaviours = ['right', 'refuses', 'silent', 'liar', 'garbage', 'dies', 'absent'] as const;
export type WorkerBehaviour = (typeof workerBehaviours)[number];

export interface SimulatedWorker {
  behaviour: WorkerBehaviour;
  /** Connects unless it is connected already or its behaviour is `absent`. */
  connect(): void;
  leave(): void;
}

export function simulatedWorker(socketPath: string, name: string): SimulatedWorker {
  let connection: RawWorker | undefined;
  const leave = (): void => {
    connection?.end();
    connection = undefined;
  };
  const listen = async (mine: RawWorker): Promise<void> => {
    try {
      for (;;) react(mine, JSON.parse(await mine.line()) as Notification);
    } catch {
      if (connection === mine) connection = undefined;
      mine.end();
    }
  };
  const react = (mine: RawWorker, { id, generation, path }: Notification): void => {
    if (id === undefined) return;
    const nack = { type: 'nack', id, generation, reason: 'no' };
    switch (worker.behaviour) {
      case 'right':
        mine.send(isNacked(path) ? nack : { type: 'ack', id, generation });
        return;
      case 'refuses':
        mine.send(nack);
        return;
      case 'liar':
        for (const signedOffset of [id + 7, -1])
          mine.send({ type: 'ack', id: signedOffset, generation: generation + 1 });
        return;
      case 'garbage':
        mine.send('{"type":"ack"\0}\n'.repeat(20));
        return;
      case 'dies':
        mine.end();
        return;
      default:
        return;
    }
  };
  const worker: SimulatedWorker = {
    behaviour: 'right',
    connect: () => {
      if (worker.behaviour === 'absent') leave();
      if (worker.behaviour === 'absent' || connection !== undefined || !existsSync(socketPath)) return;
      connection = rawWorker(socketPath);
      connection.send({ writ: 1, version: '0.1.0' });
      connection.send({ type: 'hello', name, pid: 4711 });
      void listen(connection);
    },
    leave,
  };
  return worker;
}

interface Notification {
  readonly id?: number;
  readonly generation: number;
  readonly path: string;
}

/** A release that workers refuse has a file of this name. */
function isNacked(path: string): boolean {
  return bundles.some((bundle) => existsSync(join(path, bundle, 'nacked')));
}
