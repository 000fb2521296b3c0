// Decides how one report changes its host's row, from the row and the report alone. Pure; commit-reports.ts writes the result.
import {
  type CounterChallenge,
  type FleetReport,
  isBlocked,
  type ReportAnswer,
} from '../../core/fleet/report.js';
import type { HostRow } from '../store/tables.js';
import { judgeIds } from './clone-rules.js';
import { grantedInterval, judgeCounter } from './counter-rules.js';
import { stateDigest } from './report-rows.js';
import type { SignedRequest } from './signed-request.js';

/** A report with a verified signature and a valid body. */
export interface VerifiedReport {
  readonly signed: Omit<SignedRequest, 'kind' | 'fleet'>;
  readonly report: FleetReport;
  readonly receivedAtMs: number;
}

/** The columns that a decision needs: all but the text of the last report. */
export type StoredHost = Omit<HostRow, 'report'>;

export const storedColumns = [
  ...(['key_id', 'public_key', 'kind', 'state', 'host', 'install_id', 'boot_id', 'token_id'] as const),
  ...([
    'ephemeral',
    'enrolled_at_ms',
    'counter',
    'body_digest',
    'nonce',
    'last_seen_ms',
    'every_ms',
  ] as const),
  ...([
    'skew_ms',
    'agent',
    'health',
    'version',
    'root_version',
    'root_digest',
    'cloned',
    'blocked',
    'slot',
  ] as const),
  ...(['last_outcome', 'state_digest', 'revision', 'past_ids', 'id_returns', 'answers'] as const),
];

/** The columns that a keepalive changes. */
export type SeenHost = Pick<
  HostRow,
  'key_id' | 'counter' | 'body_digest' | 'last_seen_ms' | 'every_ms' | 'skew_ms'
>;

export type ReportRefusal =
  | 'FLEET_KEY_UNKNOWN'
  | 'FLEET_KEY_WAITING'
  | 'FLEET_KEY_RETIRED'
  | 'FLEET_HOST_NOT_COVERED'
  | 'FLEET_REPORT_INVALID';

export type ReportVerdict =
  /** HTTP 200, also for a repeated report. */
  | { readonly kind: 'accepted'; readonly answer: ReportAnswer }
  /** HTTP 409. */
  | { readonly kind: 'challenge'; readonly challenge: CounterChallenge }
  | { readonly kind: 'refused'; readonly code: ReportRefusal; readonly reason?: string }
  /** HTTP 503: nothing is stored, and the host retries. */
  | { readonly kind: 'unavailable' };

export type ReportPlan =
  /** No row changes. */
  | { readonly kind: 'answered'; readonly verdict: ReportVerdict }
  | { readonly kind: 'asked'; readonly nonce: string; readonly verdict: ReportVerdict }
  | { readonly kind: 'seen'; readonly seen: SeenHost; readonly verdict: ReportVerdict }
  | { readonly kind: 'changed'; readonly host: HostRow; readonly verdict: ReportVerdict };

export interface PlanFacts {
  /** Multiplies the report interval that a host asks for; 1 or more. */
  readonly factor: number;
  /** Called only when the plan is a challenge. */
  readonly newNonce: () => string;
}

/**
 * Decides the answer to a report and the row that it writes: none, the columns of a keepalive, or the complete row of
 * the host.
 * A repeated report is accepted again and changes nothing. A counter that may come from a copy of the host gets a
 * challenge.
 * @param host the stored row of the key; undefined: the key is unknown, and the report is refused
 */
export function planReport(
  host: StoredHost | undefined,
  taken: VerifiedReport,
  facts: PlanFacts,
): ReportPlan {
  if (host === undefined) return refusal('FLEET_KEY_UNKNOWN');
  if (host.state === 'waiting' && !hasNewName(host, taken.report)) return refusal('FLEET_KEY_WAITING');
  if (host.state === 'retired') return refusal('FLEET_KEY_RETIRED');
  const { counter, bodyDigest, nonce } = taken.signed;
  const last = { counter: host.counter, bodyDigest: host.body_digest, nonce: host.nonce };
  const verdict = judgeCounter(last, { counter, bodyDigest, nonce });
  if (verdict === 'repeat') return { kind: 'answered', verdict: accepted(host.every_ms, host.last_outcome) };
  if (verdict === 'challenge') return challenge(host, facts.newNonce);
  return planChange(host, taken, facts.factor, verdict);
}

/**
 * Whether a waiting host reports another name than the one that is taken; the caller then decides whether the new name is free.
 * A host that was never accepted has no stored report, and waits for the approval of an operator.
 */
function hasNewName(host: StoredHost, report: FleetReport): boolean {
  return host.body_digest !== '' && report.host !== host.host;
}

function planChange(
  host: StoredHost,
  { signed, report, receivedAtMs }: VerifiedReport,
  factor: number,
  verdict: 'newer' | 'answered',
): ReportPlan {
  const everyMs = grantedInterval(report.everyMs, factor);
  const outcome = Math.max(0, ...report.outcomes.map(({ n }) => n));
  // The answer to a challenge comes from a host that was restored from a snapshot: its outcome numbers decreased too.
  const lastOutcome =
    verdict === 'answered' ? outcome || host.last_outcome : Math.max(outcome, host.last_outcome);
  const seen: SeenHost = {
    key_id: host.key_id,
    counter: signed.counter,
    body_digest: signed.bodyDigest,
    last_seen_ms: receivedAtMs,
    every_ms: everyMs,
    skew_ms: signed.createdAtMs - receivedAtMs,
  };
  const digest = stateDigest(report);
  const isKeepalive = verdict === 'newer' && outcome === 0 && digest === host.state_digest;
  if (isKeepalive) return { kind: 'seen', seen, verdict: accepted(everyMs, lastOutcome) };
  const ids = judgeIds(
    {
      ...{ installId: host.install_id, bootId: host.boot_id, pastIds: host.past_ids },
      ...{ returns: host.id_returns, answers: host.answers },
    },
    { ...report, isAnswer: verdict === 'answered' },
  );
  const changed: HostRow = {
    ...host,
    ...seen,
    ...reportColumns(report),
    // An ephemeral host that stops is retired at once, so that no counter includes it. sweeps.ts retires it after a day of silence.
    state: host.ephemeral === 1 && report.agent === 'stop' ? 'retired' : 'accepted',
    nonce: '',
    last_outcome: lastOutcome,
    state_digest: digest,
    past_ids: ids.pastIds,
    id_returns: ids.returns,
    answers: ids.answers,
    cloned: ids.cloned ? 1 : host.cloned,
    revision: host.revision + 1,
  };
  return { kind: 'changed', host: changed, verdict: accepted(everyMs, lastOutcome) };
}

/**
 * Changes a host that reports a taken name to `waiting`: it keeps its row, and no counter includes it until an
 * operator approves it.
 * @param before the row of the host before the report
 */
export function waitForName(
  before: StoredHost,
  { host, counter, body_digest, last_seen_ms }: HostRow,
): ReportPlan {
  // Clear the state digest: the first report after the approval must be stored as a change, even if it equals the last one.
  const left = { state: 'waiting', state_digest: '', report: '', nonce: '' } as const;
  const changed = {
    ...before,
    ...left,
    host,
    counter,
    body_digest,
    last_seen_ms,
    revision: before.revision + 1,
  };
  return { kind: 'changed', host: changed, verdict: { kind: 'refused', code: 'FLEET_KEY_WAITING' } };
}

type ReportColumns = Pick<
  HostRow,
  | 'host'
  | 'install_id'
  | 'boot_id'
  | 'agent'
  | 'health'
  | 'version'
  | 'root_version'
  | 'root_digest'
  | 'blocked'
  | 'report'
>;

function reportColumns(report: FleetReport): ReportColumns {
  const { host, installId, bootId, agent, health, version, root } = report;
  return {
    host,
    install_id: installId,
    boot_id: bootId,
    agent,
    health,
    version,
    root_version: root?.version ?? 0,
    root_digest: root?.sha256 ?? '',
    blocked: isBlocked(report) ? 1 : 0,
    report: JSON.stringify(report),
  };
}

function accepted(everyMs: number, outcomes: number): ReportVerdict {
  return { kind: 'accepted', answer: { everyMs, outcomes } };
}

function refusal(code: ReportRefusal): ReportPlan {
  return { kind: 'answered', verdict: { kind: 'refused', code } };
}

/** Repeats the open challenge, if there is one, so that replays of old reports write nothing. */
function challenge(host: StoredHost, newNonce: () => string): ReportPlan {
  const { counter } = host;
  const nonce = host.nonce || newNonce();
  const verdict: ReportVerdict = { kind: 'challenge', challenge: { counter, nonce } };
  return host.nonce === '' ? { kind: 'asked', nonce, verdict } : { kind: 'answered', verdict };
}
