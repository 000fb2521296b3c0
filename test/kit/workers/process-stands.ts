// Stands of daemons that do not listen, or that connect to the agent: units, programs, processes with pid files, native workers.
// They own the processes; the test asserts the answers of the driver.
import { rmSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import type { TempDir } from '../disk/temp-dir.js';
import { stubSystemctl } from '../programs/stub-systemctl.js';
import { driverContext } from './driver-context.js';
import { type DriverStand, driverOf, type StandState } from './driver-stand.js';
import { joinAs, type RawWorker } from './raw-worker.js';

/** @param options `action`, or no member */
export async function systemdStand(dir: TempDir, options: object = {}): Promise<DriverStand> {
  const stub = stubSystemctl(dir.path);
  const context = driverContext({ programPath: stub.programPath });
  stub.job(`. ${dir.path}/$unit.job`);
  const scripts: Readonly<Record<StandState, string>> = {
    works: 'exit 0',
    refuses: 'echo "Job for $unit failed." >&2; exit 1',
    hangs: 'sleep 60',
    dead: 'exit 0',
    absent: 'exit 0',
  };
  return {
    driver: driverOf({ systemd: 'worker@*.service', ...options }, context),
    workers: ['worker@a.service', 'worker@b.service'],
    set: async (worker, state) => {
      if (state === 'absent') return;
      stub.unit(worker, { active: state === 'dead' ? 'failed' : 'active' });
      writeFileSync(dir.join(`${worker}.job`), `${scripts[state]}\n`);
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** @param options `confirms`, or no member */
export async function commandStand(dir: TempDir, options: object = {}): Promise<DriverStand> {
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
      ...options,
    }),
    workers: ['a', 'b'],
    set: async (worker, state) => {
      if (state === 'absent') rmSync(dir.join(worker), { force: true });
      else writeFileSync(dir.join(worker), `${scripts[state]}\n`);
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** @param start starts a process with this behaviour, which gets a pid file */
export function pidFileStand(
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

/** @returns a stand with the workers `a` and `b`, which are not connected yet */
export async function nativeStand(dir: TempDir): Promise<DriverStand> {
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
