// A native worker of a life: it does what it is told, or what workers do. It connects again by itself when it is asked to.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type RawWorker, rawWorker } from '../../kit/workers/raw-worker.js';
import { bundles } from './life-publisher.js';

export const moods = ['right', 'refuses', 'silent', 'liar', 'garbage', 'dies', 'absent'] as const;
export type Mood = (typeof moods)[number];

export interface LifeWorker {
  mood: Mood;
  /** Connects where it is not, unless it is to be absent. */
  beThere(): void;
  leave(): void;
}

export function lifeWorker(socketPath: string, name: string): LifeWorker {
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
    switch (worker.mood) {
      case 'right':
        mine.send(isNacked(path) ? nack : { type: 'ack', id, generation });
        return;
      case 'refuses':
        mine.send(nack);
        return;
      case 'liar':
        for (const wrong of [id + 7, -1]) mine.send({ type: 'ack', id: wrong, generation: generation + 1 });
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
  const worker: LifeWorker = {
    mood: 'right',
    beThere: () => {
      if (worker.mood === 'absent') leave();
      if (worker.mood === 'absent' || connection !== undefined || !existsSync(socketPath)) return;
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
