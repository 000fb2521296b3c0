// Compares the results of one cycle: the exit code, the JSON of the command, `writ status --json` and the link on disk. The
// test reads the policy of the workers itself.
import assert from 'node:assert/strict';
import type { Notified, WholeSystem } from '../agent/whole-system.js';

export interface Wanted {
  readonly exitCode: number;
  readonly outcome: string;
  readonly code?: string;
  /** State of each worker in status, by its name. */
  readonly workers: Readonly<Record<string, string>>;
}

interface Status {
  readonly last?: { readonly cycle: string; readonly outcome: string };
  readonly generation?: number;
  readonly confirmed: boolean;
  readonly workers: readonly {
    readonly worker: string;
    readonly state: string;
    readonly wanted?: number;
    readonly confirmed?: number;
  }[];
}

/**
 * Asserts that all of them match.
 * @param notified result of the command of the last cycle
 */
export async function expectAgreement(writ: WholeSystem, notified: Notified, wanted: Wanted): Promise<void> {
  const { exitCode, json } = notified;
  const all = JSON.stringify(json);
  assert.deepEqual(
    [exitCode, json['exitCode'], json['outcome']],
    [wanted.exitCode, exitCode, wanted.outcome],
    all,
  );
  assert.equal(json['code'], wanted.code, all);
  const status = (await writ.status()) as unknown as Status;
  const statusText = JSON.stringify(status);
  assert.deepEqual([status.last?.cycle, status.last?.outcome], [json['cycle'], wanted.outcome], statusText);
  assert.equal(status.generation, json['generation'], statusText);
  assert.equal(writ.current(), `generations/${status.generation}`);
  assert.deepEqual(
    Object.fromEntries(status.workers.map(({ worker, state }) => [worker, state])),
    wanted.workers,
    statusText,
  );
  const proven = status.workers.every(
    (one) => one.state === 'confirmed' && one.confirmed === status.generation && one.wanted === one.confirmed,
  );
  assert.equal(status.confirmed, proven, statusText);
  if (wanted.outcome === 'activated') assert.equal(json['confirmed'], proven, all);
}
