// Stands of daemons that listen, each with the fake of this folder that has its protocol. They own the daemons; the test
// asserts the answers of the driver.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { Driver } from '../../../src/workers/contract/driver.js';
import { leaveStaleSocket } from '../disk/stale-socket.js';
import type { TempDir } from '../disk/temp-dir.js';
import { freePort } from '../programs/free-port.js';
import { type DriverStand, driverOf, type StandRow, type StandState } from './driver-stand.js';
import { type FakeHttpAnswer, startFakeHttpWorker } from './fake-http-worker.js';
import { startFakeKresd } from './fake-kresd.js';
import { startFakeLineServer } from './fake-line-server.js';
import { startFakeSupervisord, xmlArray, xmlFault, xmlProcess, xmlTrue } from './fake-supervisord.js';

interface Closable {
  close(): Promise<void>;
}

/** @returns a stand of daemons with a unix socket each */
async function socketStand(
  dir: TempDir,
  driver: Driver,
  start: (path: string, state: 'works' | 'refuses' | 'hangs') => Promise<Closable>,
): Promise<DriverStand> {
  const running = new Map<string, Closable>();
  const stop = async (worker: string): Promise<void> => {
    await running.get(worker)?.close();
    running.delete(worker);
    rmSync(dir.join(worker), { force: true });
  };
  return {
    driver,
    workers: ['a.sock', 'b.sock'],
    set: async (worker, state) => {
      await stop(worker);
      if (state === 'dead') await leaveStaleSocket(dir.join(worker));
      else if (state !== 'absent') running.set(worker, await start(dir.join(worker), state));
    },
    [Symbol.asyncDispose]: async () => {
      for (const worker of [...running.keys()]) await stop(worker);
    },
  };
}

/** @returns an opener of stands with fake workers of this release of kresd */
export function kresdStand(release: '5.6' | '6.4', command: string): StandRow['open'] {
  return (dir) =>
    socketStand(
      dir,
      driverOf({ kresd: dir.join('*.sock'), command, expect: '0', confirms: true }),
      (path, state) =>
        startFakeKresd(path, {
          release,
          ...(state === 'refuses' ? { answer: () => 'file open error' } : {}),
          ...(state === 'hangs' ? { behaviour: 'hang' } : {}),
        }),
    );
}

/** @returns an opener of stands with daemons of a text protocol */
export function lineStand(options: object): StandRow['open'] {
  return (dir) =>
    socketStand(dir, driverOf({ line: dir.join('*.sock'), send: 'reload', ...options }), (path, state) =>
      startFakeLineServer(path, {
        habit: state === 'hangs' ? 'hang' : 'unbound',
        answer: () => (state === 'refuses' ? 'error: line 3' : 'ok'),
      }),
    );
}

/** @returns an opener of stands with daemons that are notified by HTTP */
export function httpStand(options: object): StandRow['open'] {
  return (dir) =>
    socketStand(
      dir,
      driverOf({ http: { unix: dir.join('*.sock'), path: '/reload' }, ...options }),
      (path, state) =>
        startFakeHttpWorker(() => (state === 'hangs' ? 'hang' : { status: state === 'works' ? 200 : 500 }), {
          path,
        }),
    );
}

/** Daemons with a port each; the members are the files of a directory, listed by a command. */
export async function urlStand(dir: TempDir): Promise<DriverStand> {
  const workers = [String(await freePort()), String(await freePort())].sort() as [string, string];
  const running = new Map<string, Closable>();
  const ports = dir.join('ports');
  mkdirSync(ports);
  const stop = async (worker: string): Promise<void> => {
    await running.get(worker)?.close();
    running.delete(worker);
    rmSync(`${ports}/${worker}`, { force: true });
  };
  return {
    driver: driverOf({ http: 'http://127.0.0.1:{worker}/reload', members: { run: ['ls', ports] } }),
    workers,
    set: async (worker, state) => {
      await stop(worker);
      if (state === 'absent') return;
      writeFileSync(`${ports}/${worker}`, '');
      if (state === 'dead') return;
      const answer = (): FakeHttpAnswer =>
        state === 'hangs' ? 'hang' : { status: state === 'works' ? 200 : 500 };
      running.set(worker, await startFakeHttpWorker(answer, { port: Number(worker) }));
    },
    [Symbol.asyncDispose]: async () => {
      for (const worker of workers) await stop(worker);
    },
  };
}

/** @param options `signal`; without it the driver restarts */
export async function supervisordStand(dir: TempDir, options: object): Promise<DriverStand> {
  const states = new Map<string, StandState>();
  const endsAtStart = !('signal' in options);
  const present = (): [string, StandState][] => [...states].filter(([, state]) => state !== 'absent');
  const describe = (id: string, state: StandState): string => {
    const name = id.slice('web:'.length);
    // A program that refuses exits at its start, and runs until the driver starts it again.
    const spawnError = state === 'refuses' ? { spawnError: 'Exited too quickly (see log)' } : {};
    const isUp = state !== 'dead' && !(state === 'refuses' && endsAtStart);
    const [number, pid] = isUp ? [20, 7] : [200, 0];
    return xmlProcess({ group: 'web', name, state: number, stateName: 'S', pid, ...spawnError });
  };
  const started = (id: string, state: StandState): string => {
    if (state === 'hangs') return 'hang';
    if (state === 'refuses') return xmlFault(40, `ABNORMAL_TERMINATION: ${id}`);
    states.set(id, 'works');
    return xmlTrue;
  };
  const other = { group: 'other', name: 'x', state: 20, stateName: 'RUNNING', pid: 8 };
  const fake = await startFakeSupervisord(dir.join('s'), (method, [id = '']) => {
    if (method === 'getAllProcessInfo')
      return xmlArray([...present().map(([one, state]) => describe(one, state)), xmlProcess(other)]);
    const state = states.get(id) ?? 'absent';
    if (state === 'absent') return xmlFault(10, `BAD_NAME: ${id}`);
    if (method === 'getProcessInfo') return describe(id, state);
    if (method === 'startProcess') return started(id, state);
    if (state === 'hangs' && method === 'signalProcess') return 'hang';
    return state === 'dead' ? xmlFault(70, `NOT_RUNNING: ${id}`) : xmlTrue;
  });
  return {
    driver: driverOf({ supervisord: dir.join('s'), processes: ['web:a', 'web:b'], ...options }),
    workers: ['web:a', 'web:b'],
    set: async (worker, state) => void states.set(worker, state),
    [Symbol.asyncDispose]: () => fake.close(),
  };
}
