// Two workers behind each driver, whose state a test sets: the same cases are played with every driver. Owns the
// daemons, which are stand-ins from this folder; what a driver says of them is the test's to judge.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import type { Answer, Driver } from '../../src/workers/driver.js';
import { driverKinds } from '../../src/workers/registry.js';
import { driverContext } from './driver-context.js';
import { startFakeHttpWorker } from './fake-http-worker.js';
import { startFakeKresd } from './fake-kresd.js';
import { startFakeLineServer } from './fake-line-server.js';
import { startFakeMaster } from './fake-master.js';
import { startFakeSupervisord, xmlArray, xmlFault, xmlProcess, xmlTrue } from './fake-supervisord.js';
import { startFakeWorker } from './fake-worker.js';
import { joinAs, type RawWorker } from './raw-worker.js';
import { leaveStaleSocket } from './stale-socket.js';
import { stubSystemctl } from './stub-systemctl.js';
import type { TempDir } from './temp-dir.js';

export type StandState = 'works' | 'refuses' | 'hangs' | 'dead' | 'absent';

export interface DriverStand extends AsyncDisposable {
  readonly driver: Driver;
  /** Ids of the two workers; both are absent at first. */
  readonly workers: readonly [string, string];
  set(worker: string, state: StandState): Promise<void>;
}

export interface StandRow {
  readonly name: string;
  open(dir: TempDir): Promise<DriverStand>;
  /** What a worker that works, refuses, or hangs makes the driver say; left out where the driver cannot see it. */
  readonly works: Answer['kind'];
  readonly refuses?: Answer['kind'];
  readonly hangs?: Answer['kind'];
  /** Whether a worker that died is still one of the set; a connection that is gone is not. */
  readonly dead: 'listed' | 'gone';
  /** `listed`: the configuration names it, there or not. */
  readonly absent?: 'listed';
}

function driverOf(options: Record<string, unknown>, context = driverContext()): Driver {
  const [name = ''] = Object.keys(options);
  const kind = driverKinds.find((one) => one.name === name);
  if (kind === undefined) throw new Error(`no driver ${name}`);
  return kind.create(options, context);
}

interface Closable {
  close(): Promise<void>;
}

/** A stand of daemons that listen on a socket each. */
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

function kresdStand(release: '5.6' | '6.4', command: string): StandRow['open'] {
  return (dir) =>
    socketStand(dir, driverOf({ kresd: dir.join('*.sock'), command, expect: '0' }), (path, state) =>
      startFakeKresd(path, {
        release,
        ...(state === 'refuses' ? { answer: () => 'file open error' } : {}),
        ...(state === 'hangs' ? { behaviour: 'hang' } : {}),
      }),
    );
}

function lineStand(options: object): StandRow['open'] {
  return (dir) =>
    socketStand(dir, driverOf({ line: dir.join('*.sock'), send: 'reload', ...options }), (path, state) =>
      startFakeLineServer(path, {
        habit: state === 'hangs' ? 'hang' : 'unbound',
        answer: () => (state === 'refuses' ? 'error: line 3' : 'ok'),
      }),
    );
}

function httpStand(options: object): StandRow['open'] {
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

async function supervisordStand(dir: TempDir): Promise<DriverStand> {
  const states = new Map<string, StandState>();
  const present = (): [string, StandState][] => [...states].filter(([, state]) => state !== 'absent');
  const describe = (id: string, state: StandState): string => {
    const isUp = state !== 'dead';
    const name = id.slice('web:'.length);
    return xmlProcess({ group: 'web', name, state: isUp ? 20 : 200, stateName: 'S', pid: isUp ? 7 : 0 });
  };
  const other = { group: 'other', name: 'x', state: 20, stateName: 'RUNNING', pid: 8 };
  const fake = await startFakeSupervisord(dir.join('s'), (method, [id = '']) => {
    if (method === 'getAllProcessInfo')
      return xmlArray([...present().map(([one, state]) => describe(one, state)), xmlProcess(other)]);
    const state = states.get(id) ?? 'absent';
    if (state === 'absent') return xmlFault(10, `BAD_NAME: ${id}`);
    if (method === 'getProcessInfo') return describe(id, state);
    if (state === 'hangs') return 'hang';
    return state === 'dead' ? xmlFault(70, `NOT_RUNNING: ${id}`) : xmlTrue;
  });
  const options = { supervisord: dir.join('s'), processes: ['web:a', 'web:b'], signal: 'HUP' };
  return {
    driver: driverOf(options),
    workers: ['web:a', 'web:b'],
    set: async (worker, state) => void states.set(worker, state),
    [Symbol.asyncDispose]: () => fake.close(),
  };
}

async function systemdStand(dir: TempDir): Promise<DriverStand> {
  const stub = stubSystemctl(dir.path);
  const context = driverContext({ programPath: stub.programPath });
  stub.job(`. ${dir.path}/$unit.job`);
  const scripts: Readonly<Record<StandState, string>> = {
    works: 'exit 0',
    refuses: 'exit 1',
    hangs: 'sleep 60',
    dead: 'exit 0',
    absent: 'exit 0',
  };
  return {
    driver: driverOf({ systemd: 'worker@*.service' }, context),
    workers: ['worker@a.service', 'worker@b.service'],
    set: async (worker, state) => {
      if (state === 'absent') return;
      stub.unit(worker, { active: state === 'dead' ? 'failed' : 'active' });
      writeFileSync(dir.join(`${worker}.job`), `${scripts[state]}\n`);
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function commandStand(dir: TempDir): Promise<DriverStand> {
  const scripts: Readonly<Record<StandState, string>> = {
    works: 'exit 0',
    refuses: 'exit 1',
    hangs: 'sleep 60',
    dead: 'exit 69',
    absent: '',
  };
  return {
    driver: driverOf({
      run: ['sh', '-c', `cd ${dir.path} && [ -e $WRIT_WORKER ] || exit 69; . ./$WRIT_WORKER`],
      members: { run: ['ls', dir.path] },
    }),
    workers: ['a', 'b'],
    set: async (worker, state) => {
      if (state === 'absent') rmSync(dir.join(worker), { force: true });
      else writeFileSync(dir.join(worker), `${scripts[state]}\n`);
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** Processes behind pid files; `start` gives one that behaves so. */
function pidFileStand(
  dir: TempDir,
  options: object,
  start: (name: string, state: StandState) => Promise<{ readonly pid: number; end(): Promise<void> }>,
): DriverStand {
  const running = new Map<string, () => Promise<void>>();
  return {
    driver: driverOf({ signal: 'HUP', pidFile: dir.join('*.pid'), ...options }),
    workers: ['a.pid', 'b.pid'],
    set: async (worker, state) => {
      await running.get(worker)?.();
      running.delete(worker);
      if (state === 'absent') return;
      const { pid, end } = await start(`${worker}-${state}`, state);
      writeFileSync(dir.join(worker), `${pid}\n`);
      if (state === 'dead') await end();
      else running.set(worker, end);
    },
    [Symbol.asyncDispose]: async () => {
      for (const end of running.values()) await end();
    },
  };
}

async function nativeStand(dir: TempDir): Promise<DriverStand> {
  const driver = driverOf({ native: 'app' }, driverContext({ runDirectory: dir.path }));
  await driver.open?.();
  const connected = new Map<string, RawWorker>();
  const answer = async (worker: RawWorker, state: StandState): Promise<void> => {
    for (;;) {
      const { id, generation } = JSON.parse(await worker.line());
      const verdict = state === 'works' ? { type: 'ack' } : { type: 'nack', reason: 'no' };
      if (state !== 'hangs') worker.send({ ...verdict, id, generation });
    }
  };
  return {
    driver,
    workers: ['a', 'b'],
    set: async (name, state) => {
      connected.get(name)?.end();
      connected.delete(name);
      while ((await driver.members()).includes(name)) await setTimeout(5);
      if (state === 'dead' || state === 'absent') return;
      const worker = await joinAs(dir.join('workers/app.sock'), name);
      connected.set(name, worker);
      answer(worker, state).catch(() => undefined);
      while (!(await driver.members()).includes(name)) await setTimeout(5);
    },
    [Symbol.asyncDispose]: async () => {
      for (const worker of connected.values()) worker.end();
      await driver.close?.();
    },
  };
}

const early = { works: 'told', refuses: 'refused', hangs: 'unreachable', dead: 'listed' } as const;
const vouched = { ...early, works: 'confirmed' } as const;

export const standRows: readonly StandRow[] = [
  { name: 'kresd, with a stand-in for 5.6', open: kresdStand('5.6', 'policy_reset()'), ...vouched },
  {
    name: 'kresd, with a stand-in for 6',
    open: kresdStand('6.4', "require('ffi').C.kr_rules_reset()"),
    ...vouched,
  },
  { name: 'line', open: lineStand({ expect: 'ok' }), ...early },
  { name: 'line that is vouched for', open: lineStand({ expect: 'ok', confirms: true }), ...vouched },
  { name: 'http', open: httpStand({}), ...early },
  { name: 'http that is vouched for', open: httpStand({ confirms: true }), ...vouched },
  {
    name: 'supervisord, with a stand-in',
    open: supervisordStand,
    works: 'told',
    hangs: 'unreachable',
    dead: 'listed',
    absent: 'listed',
  },
  { name: 'systemd, with a stub of systemctl', open: systemdStand, ...early },
  { name: 'run', open: commandStand, ...early },
  {
    name: 'signal',
    open: async (dir) =>
      pidFileStand(dir, {}, async (name) => {
        const { pid, kill } = await startFakeWorker(dir.join(name));
        return { pid, end: kill };
      }),
    works: 'told',
    dead: 'listed',
  },
  {
    name: 'signal with proof',
    open: async (dir) =>
      pidFileStand(dir, { proof: 'children' }, async (name, state) => {
        const place = dir.join(`master-${name}`);
        mkdirSync(place, { recursive: true });
        const master = await startFakeMaster(place, state === 'works' ? 'replaces' : 'keeps');
        return { pid: master.pid, end: async () => master[Symbol.asyncDispose]() };
      }),
    works: 'confirmed',
    refuses: 'unreachable',
    hangs: 'unreachable',
    dead: 'listed',
  },
  { name: 'native', open: nativeStand, ...vouched, dead: 'gone' },
];
