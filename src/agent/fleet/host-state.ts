// What a host keeps of its fleet over restarts, and in which order: a key is durable before anybody has heard of it, a counter
// before it is sent, an outcome when it happened. A damaged counter or list of outcomes begins again, for the server's answers
// put both right; a damaged key is a person's to replace.

import { WritError } from '../../core/errors.js';
import type { OutcomeReport } from '../../core/fleet/report.js';
import { maxCounter } from '../../core/fleet/signed-request.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { StateFile } from '../state/state-file.js';
import { type Enrolment, noCounter, noOutcomes, type OutcomesFile, openFleetFiles } from './fleet-files.js';
import { type FleetKey, newSecret, readSecret } from './fleet-key.js';
import { withOutcome, withoutStored } from './outcome-rules.js';

export interface HostState {
  readonly key: FleetKey;
  enrolment(): Enrolment | undefined;
  /** Durable before it returns. */
  setEnrolment(enrolment: Enrolment): void;
  /** A number above every one that was ever given, and above `than`; durable, so that no crash gives it again. */
  nextCounter(than?: number): number;
  outcomes(): OutcomesFile;
  note(outcome: Omit<OutcomeReport, 'n'>): void;
  /** A server has stored a report: `stored` is the number of its last outcome, `news` what it said apart from times. */
  acknowledge(stored: number, acknowledged: { readonly atMs: number; readonly news: string }): void;
}

export interface HostStateOptions {
  readonly directory: string;
  readonly durable: DurableFs;
  readonly installId: string;
}

/** Flushed once for so many reports. */
const counterBlock = 64;

/** @throws WritError FLEET_STATE_DAMAGED, DISK_* */
export function openHostState({ directory, durable, installId }: HostStateOptions): HostState {
  const { key: keyFile, counter, outcomes } = openFleetFiles(directory, durable);
  for (const [file, first] of [
    [counter, noCounter],
    [outcomes, noOutcomes],
  ] as const)
    if (file.condition() instanceof WritError) (file as StateFile<unknown>).replace(first);
  const damage = keyFile.condition();
  if (damage instanceof WritError) throw damaged(directory, damage);
  if (keyFile.read().installId !== installId || keyFile.read().secret === '') {
    // What happened on the machine that this one is a copy of is not this one's to tell.
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
      // A report that said nothing new costs no flush.
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
