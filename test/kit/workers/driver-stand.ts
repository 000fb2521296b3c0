// The interface between the common driver tests and each driver: two workers with states that a test sets. It has the types.
import type { Answer, Driver } from '../../../src/workers/contract/driver.js';
import { driverKinds } from '../../../src/workers/registry.js';
import type { TempDir } from '../disk/temp-dir.js';
import { driverContext } from './driver-context.js';

export type StandState = 'works' | 'refuses' | 'hangs' | 'dead' | 'absent';

export interface DriverStand extends AsyncDisposable {
  readonly driver: Driver;
  /** Ids of the two workers, which are both absent at first. */
  readonly workers: readonly [string, string];
  set(worker: string, state: StandState): Promise<void>;
}

export interface StandRow {
  readonly name: string;
  open(dir: TempDir): Promise<DriverStand>;
  /** Kind of the driver's answer for a worker in this state; `notified` if the driver cannot observe the state. */
  readonly works: Answer['kind'];
  readonly refuses: Answer['kind'];
  readonly hangs: Answer['kind'];
  /** `notified` if a notification starts a dead worker. */
  readonly dead: 'unreachable' | 'notified';
  /** Whether a dead worker is still a member; a worker with a closed connection is not. */
  readonly deadIs: 'listed' | 'gone';
  /** `listed`: the configuration names an absent worker. */
  readonly absent?: 'listed';
}

/**
 * @param options as in `reset:`, with the key of the driver first
 * @throws Error if no driver has this key
 */
export function driverOf(options: Record<string, unknown>, context = driverContext()): Driver {
  const [name = ''] = Object.keys(options);
  const kind = driverKinds.find((one) => one.name === name);
  if (kind === undefined) throw new Error(`no driver ${name}`);
  return kind.create(options, context);
}
