// A host with bake times in virtual time: a test host, the bake rounds of an agent, and a worker that a test ends. It asserts
// nothing.
import { createBakeTurn } from '../../../src/agent/bake/bake-turn.js';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import { exclusiveAlone } from '../../../src/agent/job/exclusive.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { RecordedEnds } from '../../../src/workers/contract/driver.js';
import { settleInTurn } from '../agent/settle-now.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../workers/scripted-driver.js';
import { type Files, type TestHost, type TestHostOptions, testHost } from './test-host.js';

export interface BakingHost extends Disposable {
  readonly test: TestHost;
  readonly driver: SupervisedDriver;
  /** The results of automatic rollbacks. */
  readonly restores: readonly CycleEnd[];
  /** Publishes a release of `access` and pulls it. Without `files` the file `f` holds the serial. */
  take(serial: number, files?: Files): Promise<CycleEnd['result']>;
  /** Advances the clock, with a bake round every 2 s. */
  pass(forMs: number, host?: Host): Promise<void>;
  /** As `pass`; every 4 s the members of groups are read and pending workers notified. */
  live(forMs: number): Promise<void>;
  /** Runs one bake round. @returns milliseconds until the next round of the agent */
  observe(): Promise<number>;
  /** @returns the content of the file `f` in the active release of `access` */
  active(): string;
}

export interface SupervisedDriver extends ScriptedDriver {
  /** Ends the process of a worker and starts a new one. `how` is the recorded exit; `abnormal` by default. */
  replace(worker: string, how?: 'abnormal' | 'clean' | 'unrecorded'): void;
}

/**
 * @param names of the workers
 * @param supervisor `unrecorded`: the driver has no `endsSince`
 * @returns a driver with workers that confirm and a supervisor that records how processes exit
 */
export function supervisedDriver(
  names: readonly string[],
  supervisor: 'recorded' | 'unrecorded' = 'recorded',
): SupervisedDriver {
  const driver = scriptedDriver(Object.fromEntries(names.map((name) => [name, confirms])));
  const ends = new Map<string, { abnormal: number; clean: number; unrecorded: number; runs: number }>();
  let pid = 100;
  for (const name of names) {
    driver.processes.set(name, `${pid++}`);
    ends.set(name, { abnormal: 0, clean: 0, unrecorded: 0, runs: 0 });
  }
  const endsSince = async (worker: string, mark: string | undefined): Promise<RecordedEnds | undefined> => {
    const known = ends.get(worker);
    if (known === undefined) return undefined;
    const { runs, ...counts } = known;
    if (mark === undefined || mark === String(runs))
      return { abnormal: 0, clean: 0, unrecorded: 0, mark: String(runs) };
    Object.assign(known, { abnormal: 0, clean: 0, unrecorded: 0 });
    return { ...counts, mark: String(runs) };
  };
  return Object.assign(driver, {
    ...(supervisor === 'recorded' ? { endsSince } : {}),
    replace: (worker: string, how: 'abnormal' | 'clean' | 'unrecorded' = 'abnormal') => {
      driver.processes.set(worker, `${pid++}`);
      const known = ends.get(worker);
      if (known === undefined) return;
      known[how] += 1;
      known.runs += 1;
    },
  });
}

export const bakeMs = 600_000;

/**
 * @param driver of the group `app`
 * @returns a host without a release
 * @example using baking = bakingHost(supervisedDriver(['a']));
 */
export function bakingHost(driver: SupervisedDriver, options: TestHostOptions = {}): BakingHost {
  const { groups, ...more } = options;
  const app = { driver, ...groups?.['app'] };
  const test = testHost({ ...more, groups: { ...groups, app } });
  const restores: CycleEnd[] = [];
  const turnOf = (host: Host) =>
    createBakeTurn({
      ...{ host: () => host, exclusive: exclusiveAlone, stop: new AbortController().signal },
      onRestored: (end) => restores.push(end),
      onNews: () => undefined,
    });
  const turns = new Map<Host, ReturnType<typeof turnOf>>();
  const turnOn = (host: Host) => {
    const turn = turns.get(host) ?? turnOf(host);
    turns.set(host, turn);
    return turn;
  };
  const pass: BakingHost['pass'] = async (forMs, host = test.host) => {
    const turn = turnOn(host);
    for (let leftMs = forMs; leftMs > 0; leftMs -= 2000) {
      await test.clock.advance(Math.min(2000, leftMs));
      await turn();
    }
  };
  return {
    test,
    driver,
    restores,
    take: async (serial, files = { f: String(serial) }) => {
      await test.publish('access', files, { serial });
      return test.pull();
    },
    pass,
    live: async (forMs) => {
      for (let leftMs = forMs; leftMs > 0; leftMs -= 4000) {
        await pass(Math.min(4000, leftMs));
        await settleInTurn(test.host);
      }
    },
    observe: () => turnOn(test.host)(),
    active: () => test.read('access/f'),
    [Symbol.dispose]: () => test[Symbol.dispose](),
  };
}
