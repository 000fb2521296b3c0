// The attempts of this host to reach the repository, in memory. src/core/status judges them. No file is written for them: after a
// restart the last success comes from status.json, or from the signature time of the trusted timestamp.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { withoutUndefined } from '../../core/given.js';
import {
  type Contact,
  classifyRefreshFailure,
  type FreshnessReport,
  judgeFreshness,
  type RefreshAttempt,
  recordAttempt,
} from '../../core/status/freshness.js';
import type { StatusReport } from '../../core/status/status.js';
import type { Clock } from '../../platform/time/clock.js';
import type { Host } from '../state/host.js';

export interface ContactMemory {
  readonly contact: Contact;
  /** Since the last success, by the monotonic clock; left out if this process had none. */
  readonly elapsedMs?: number;
}

export interface ContactKeeper {
  /** @param attempt undefined for a cycle without a refresh, or one that this process ended */
  note(attempt: RefreshAttempt | undefined): void;
  read(): ContactMemory;
  /** True after the first refresh of this process, or after ten minutes without one: `onStale` may act on the contact. */
  isConclusive(): boolean;
}

/** A server can ask for hours without a request; this must not delay the check of the age of the policy. */
const conclusiveAfterMs = 600_000;

/**
 * Creates the memory of refresh attempts, with the last contact of the earlier report. Writes no file. Throws nothing.
 * @param known the last report of this host; undefined without one: the contact is empty then
 * @returns the keeper. `read` has no `elapsedMs` (whole milliseconds) until `note` gets an attempt without an error. A noted
 *   undefined changes nothing
 */
export function keepContact(
  known: StatusReport | undefined,
  clock: Pick<Clock, 'monotonicMs'>,
): ContactKeeper {
  const startedMs = clock.monotonicMs();
  let contact = contactIn(known);
  let verifiedMonotonicMs: number | undefined;
  let tried = false;
  return {
    note: (attempt) => {
      if (attempt === undefined) return;
      tried = true;
      contact = recordAttempt(contact, attempt);
      if (attempt.error === undefined) verifiedMonotonicMs = clock.monotonicMs();
    },
    isConclusive: () => tried || clock.monotonicMs() - startedMs > conclusiveAfterMs,
    read: () =>
      verifiedMonotonicMs === undefined
        ? { contact }
        : { contact, elapsedMs: Math.round(clock.monotonicMs() - verifiedMonotonicMs) },
  };
}

/**
 * @param known the last status report; undefined where there is none
 * @returns the part of the report that stays valid after a restart; the rest is judged again. Empty without a report.
 */
export function contactIn(known: StatusReport | undefined): Contact {
  const { lastContactAtMs, verifiedAtMs, failing, refused } = known?.freshness ?? {};
  return withoutUndefined<Contact>({ lastContactAtMs, verifiedAtMs, failing, refused });
}

/** The parts of a host that the freshness depends on, with or without an agent. */
export interface FreshnessView {
  readonly config: Pick<Host['config'], 'freshness' | 'bundles'>;
  readonly clock: Pick<Host['clock'], 'nowMs'>;
  readonly client: Pick<Host['client'], 'status'>;
  readonly ledger: Pick<Host['ledger'], 'read'>;
}

/**
 * Judges how current the trusted metadata of this host is. Writes nothing.
 * @returns the report. `state` is the first that applies: `refused` (the last answer failed verification), `frozen` (a role
 *   expired), `stale` (too old, or never proven current), `fresh`. On a host without trusted metadata it is `stale`, and `ageMs`
 *   is left out unless an earlier success is known
 * @throws WritError ROOT_MISSING, ROOT_UNUSABLE, ROOT_NOT_LINKED, TRUST_STORE_DAMAGED if the trust store cannot be used
 */
export function freshnessOf(
  { client, config, ledger, clock }: FreshnessView,
  memory: ContactMemory,
): FreshnessReport {
  const { roles = {}, signedAtMs, clockFloorMs } = client.status() ?? {};
  const { staleAfterMs, maxStaleMs } = config.freshness;
  const { stale } = ledger.read();
  return judgeFreshness({
    ...{ ...memory, nowMs: clock.nowMs(), staleAfterMs, maxStaleMs, signedAtMs, clockFloorMs },
    roles: Object.entries(roles).map(([role, one]) => ({ role, ...one })),
    overdueNotedMs: stale?.phase === 'stale' && stale.of === undefined ? stale.sinceMs : undefined,
  });
}

/**
 * True if the refresh did not reach the server, which delays the next poll. A failed download beside verified metadata counts only in
 * its first cycle, for its quick retry, because further polls must keep the metadata verified.
 */
export function isUnreached({ problems, bundles, startedAtMs }: CycleResult): boolean {
  const missed = bundles.filter(({ missedSinceMs = startedAtMs }) => missedSinceMs < startedAtMs);
  return problems.some(
    ({ code, message }) =>
      classifyRefreshFailure(code) === 'unreached' &&
      !missed.some(({ problem }) => problem?.code === code && problem.message === message),
  );
}
