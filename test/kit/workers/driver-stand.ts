// What the table of cases asks of each driver: two workers behind it, whose state a test sets. Owns the shapes.
import type { Answer, Driver } from '../../../src/workers/contract/driver.js';
import { driverKinds } from '../../../src/workers/registry.js';
import type { TempDir } from '../disk/temp-dir.js';
import { driverContext } from './driver-context.js';

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
  /** What the driver says of a worker in each state: `told` where it cannot see one, never more. */
  readonly works: Answer['kind'];
  readonly refuses: Answer['kind'];
  readonly hangs: Answer['kind'];
  /** `told` where telling starts what is dead; it works then. */
  readonly dead: 'unreachable' | 'notified';
  /** Whether a worker that died is still one of the set; a connection that is gone is not. */
  readonly deadIs: 'listed' | 'gone';
  /** `listed`: the configuration names it, there or not. */
  readonly absent?: 'listed';
}

/** @param options as in `reset:`, the key of the driver first */
export function driverOf(options: Record<string, unknown>, context = driverContext()): Driver {
  const [name = ''] = Object.keys(options);
  const kind = driverKinds.find((one) => one.name === name);
  if (kind === undefined) throw new Error(`no driver ${name}`);
  return kind.create(options, context);
}
