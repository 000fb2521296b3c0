// What this host remembers of its attempts to reach the repository, while it runs and over a restart. Core judges;
// this holds the memory. Nothing is written for it: the last success comes from status.json, which is there anyway,
// or from the signature of the trusted timestamp.
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
  /** Since the last success, by a clock that nobody sets; left out when this process has seen none. */
  readonly elapsedMs?: number;
}

export interface ContactKeeper {
  /** @param attempt left out for a cycle that did not come to a refresh, or was ended by us */
  note(attempt: RefreshAttempt | undefined): void;
  read(): ContactMemory;
  /** A refresh has ended since this process began, or long enough none has: what was remembered may be acted on. */
  isSettled(): boolean;
}

/** A server that asks for hours of quiet must not keep a host from noticing how old its policy is. */
const settledAfterMs = 600_000;

/** @param known the last report of this host, if there is one */
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
    isSettled: () => tried || clock.monotonicMs() - startedMs > settledAfterMs,
    read: () =>
      verifiedMonotonicMs === undefined
        ? { contact }
        : { contact, elapsedMs: Math.round(clock.monotonicMs() - verifiedMonotonicMs) },
  };
}

/** The part of a report that outlives the process; the rest is judged again. */
export function contactIn(known: StatusReport | undefined): Contact {
  const { lastContactAtMs, verifiedAtMs, failing, refused } = known?.freshness ?? {};
  return withoutUndefined<Contact>({ lastContactAtMs, verifiedAtMs, failing, refused });
}

/** The parts of a host by which freshness is judged; a host without an agent has them too. */
export interface FreshnessView {
  readonly config: Pick<Host['config'], 'freshness' | 'bundles'>;
  readonly clock: Pick<Host['clock'], 'nowMs'>;
  readonly client: Pick<Host['client'], 'status'>;
  readonly ledger: Pick<Host['ledger'], 'read'>;
}

/** @throws WritError what reading the trust store throws */
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
 * True when the refresh did not reach the server: the next poll comes later. A release that could not be had beside verified
 * metadata counts in the first cycle only, for its quick retry: further polls must keep the metadata proven current.
 */
export function isUnreached({ problems, bundles, startedAtMs }: CycleResult): boolean {
  const missed = bundles.filter(({ missedSinceMs = startedAtMs }) => missedSinceMs < startedAtMs);
  return problems.some(
    ({ code, message }) =>
      classifyRefreshFailure(code) === 'unreached' &&
      !missed.some(({ problem }) => problem?.code === code && problem.message === message),
  );
}
