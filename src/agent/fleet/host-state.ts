// The durable fleet state of a host. A key is durable before it is sent, a counter before it is used, an outcome as soon as
// it occurred. A damaged counter or list of outcomes is reset, because the responses of the server correct both. A damaged key
// is an error, because an operator must replace it.

import { WritError } from '../../core/errors.js';
import type { OutcomeReport } from '../../core/fleet/report.js';
import { maxCounter } from '../../core/fleet/signed-request.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { StateFile } from '../state/state-file.js';
import {
  type FleetEnrolment,
  noCounter,
  noOutcomes,
  type OutcomesFile,
  openFleetFiles,
} from './fleet-files.js';
import { type FleetKey, newSecret, readSecret } from './fleet-key.js';
import { withOutcome, withoutStored } from './outcome-rules.js';

export interface FleetHostState {
  readonly key: FleetKey;
  enrolment(): FleetEnrolment | undefined;
  /** Stores an enrolment, durable when it returns. */
  setEnrolment(enrolment: FleetEnrolment): void;
  /** @returns a counter above every earlier one and above `than`. It is durable first, so that a crash cannot repeat it. */
  nextCounter(than?: number): number;
  outcomes(): OutcomesFile;
  note(outcome: Omit<OutcomeReport, 'n'>): void;
  /** Records a report that a server stored: `stored` is the number of its last outcome, `news` its fingerprint. */
  acknowledge(stored: number, acknowledged: { readonly atMs: number; readonly news: string }): void;
}

export interface HostStateOptions {
  readonly directory: string;
  readonly durable: DurableFs;
  readonly installId: string;
}

/** Number of counters that one flush reserves. */
const counterBlock = 64;

/** Opens the state. Creates a new key on a new or cloned host. @throws WritError FLEET_STATE_DAMAGED, DISK_* */
export function openHostState({ directory, durable, installId }: HostStateOptions): FleetHostState {
  const { key: keyFile, counter, outcomes } = openFleetFiles(directory, durable);
  for (const [file, first] of [
    [counter, noCounter],
    [outcomes, noOutcomes],
  ] as const)
    if (file.condition() instanceof WritError) (file as StateFile<unknown>).replace(first);
  const damage = keyFile.condition();
  if (damage instanceof WritError) throw damaged(directory, damage);
  if (keyFile.read().installId !== installId || keyFile.read().secret === '') {
    // A clone must not report outcomes of the machine that it was copied from.
    outcomes.write(noOutcomes);
    keyFile.write({ writ: 1, installId, secret: newSecret() });
  }
  let given = counter.read().reserved;
  return {
    key: openKey(directory, keyFile.read().secret),
    enrolment: () => keyFile.read().enrolment,
    setEnrolment: (enrolment) => keyFile.write({ ...keyFile.read(), enrolment }),
    nextCounter: (than = 0) => {
      const next = Math.max(given, than) + 1;
      if (next >= maxCounter) throw new WritError('FLEET_COUNTER', `the counter has reached ${next}`);
      if (next > counter.read().reserved)
        counter.write({ writ: 1, reserved: Math.min(next + counterBlock - 1, maxCounter) });
      given = next;
      return next;
    },
    outcomes: outcomes.read,
    note: (outcome) => outcomes.write(withOutcome(outcomes.read(), outcome)),
    acknowledge: (stored, acknowledged) => {
      const before = outcomes.read();
      const after = withoutStored(before, stored);
      // An unchanged report needs no flush.
      if (after === before && before.acknowledged?.news === acknowledged.news) return;
      outcomes.write({ ...after, acknowledged });
    },
  };
}

function openKey(directory: string, secret: string): FleetKey {
  try {
    return readSecret(secret);
  } catch (error) {
    throw damaged(directory, error);
  }
}

function damaged(directory: string, cause: unknown): WritError {
  return new WritError('FLEET_STATE_DAMAGED', `the key in ${directory} cannot be read`, {
    facts: { path: directory },
    cause,
  });
}
