// What this host remembers of its attempts to reach the repository, while it runs and over a restart. Core judges;
// this holds the memory. Nothing is written for it: the last success comes from status.json, which is there anyway,
// or from the signature of the trusted timestamp.

import type { CycleResult } from '../../core/cycle/cycle-report.js';
import type { StatusReport } from '../../core/protocol/control-protocol.js';
import {
  type Attempt,
  type Contact,
  contactAfter,
  type FreshnessReport,
  judgeFreshness,
  troubleOf,
} from '../../core/status/freshness.js';
import type { Clock } from '../../platform/time/clock.js';
import type { Host } from '../state/host.js';

export interface ContactMemory {
  readonly contact: Contact;
  /** Since the last success, by a clock that nobody sets; left out when this process has seen none. */
  readonly elapsedMs?: number;
}

export interface ContactKeeper {
  /** @param attempt left out for a cycle that did not come to a refresh, or was ended by us */
  note(attempt: Attempt | undefined): void;
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
      contact = contactAfter(contact, attempt);
      if (attempt.error === undefined) verifiedMonotonicMs = clock.monotonicMs();
    },
    isSettled: () => tried || clock.monotonicMs() - startedMs > settledAfterMs,
    read: () =>
      verifiedMonotonicMs === undefined
        ? { contact }
        : { contact, elapsedMs: Math.round(clock.monotonicMs() - verifiedMonotonicMs) },
  };
}

/** The part of a report that outlives the process; the rest is judged anew. */
export function contactIn(known: StatusReport | undefined): Contact {
  const { lastContactMs, verifiedAtMs, failing, refused } = known?.freshness ?? {};
  return {
    ...(lastContactMs === undefined ? {} : { lastContactMs }),
    ...(verifiedAtMs === undefined ? {} : { verifiedAtMs }),
    ...(failing === undefined ? {} : { failing }),
    ...(refused === undefined ? {} : { refused }),
  };
}

/** The parts of a host by which freshness is judged; a host without an agent has them too. */
export interface FreshnessView {
  readonly config: Pick<Host['config'], 'freshness'>;
  readonly clock: Pick<Host['clock'], 'nowMs'>;
  readonly client: Pick<Host['client'], 'status'>;
  readonly ledger: Pick<Host['ledger'], 'read'>;
}

/** @throws WritError what reading the trust store throws */
export function freshnessOf(host: FreshnessView, memory: ContactMemory): FreshnessReport {
  const { roles = {}, signedAtMs, clockFloorMs } = host.client.status() ?? {};
  const { staleAfterMs, maxStaleMs } = host.config.freshness;
  const { stale } = host.ledger.read();
  return judgeFreshness({
    ...memory,
    nowMs: host.clock.nowMs(),
    roles: Object.entries(roles).map(([role, one]) => ({ role, ...one })),
    staleAfterMs,
    ...(maxStaleMs === undefined ? {} : { maxStaleMs }),
    ...(signedAtMs === undefined ? {} : { signedAtMs }),
    ...(clockFloorMs === undefined ? {} : { clockFloorMs }),
    ...(stale?.phase === 'stale' ? { overdueNotedMs: stale.sinceMs } : {}),
  });
}

/** True when the server was not reached, or not to the end: the next poll comes later. */
export function isUnreached(result: CycleResult): boolean {
  return result.problems.some((one) => troubleOf(one.code) === 'unreached');
}
