// An open native group with its socket, late answers, and the codes of warnings, for tests of the driver.
import { pino } from 'pino';
import type { Answer, Driver, DriverContext, Target } from '../../../src/workers/contract/driver.js';
import { native } from '../../../src/workers/drivers/native.js';
import { until } from '../assert/until.js';
import type { TempDir } from '../disk/temp-dir.js';
import { driverContext } from './driver-context.js';

export const seven: Target = { generation: 7, path: '/policy/generations/7' };
export const eight: Target = { generation: 8, path: '/policy/generations/8' };
export const timeoutMs = 60_000;

export interface Setup extends AsyncDisposable {
  readonly driver: Driver;
  readonly path: string;
  readonly late: { worker: string; generation: number; answer: Answer }[];
  readonly codes: () => string[];
}

/** @returns an open driver of the group `access`, with the late answers and the codes of warnings so far */
export async function setUp(
  dir: TempDir,
  overrides: Partial<DriverContext> = {},
  options = {},
): Promise<Setup> {
  const late: Setup['late'] = [];
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const context = driverContext({
    log,
    runDirectory: dir.path,
    onLateAnswer: (worker, generation, answer) => void late.push({ worker, generation, answer }),
    ...overrides,
  });
  const driver = native.create({ native: 'access', ...options }, context);
  await driver.open?.();
  return {
    driver,
    path: dir.join('workers/access.sock'),
    late,
    codes: () => lines.map((line) => String(JSON.parse(line).code)),
    [Symbol.asyncDispose]: async () => driver.close?.(),
  };
}

/** Waits until the driver lists exactly these workers, in this order. */
export async function membersAre(driver: Driver, wanted: readonly string[]): Promise<void> {
  await until(async () => JSON.stringify(await driver.members()) === JSON.stringify(wanted));
}
