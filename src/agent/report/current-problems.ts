// The current problems of a host. A judge computes its codes from the facts of now; of the last cycle, only problems without a judge
// are reported, because the others may be over. Reads nothing: status-facts gathers the facts.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { type ErrorCode, errorCodes } from '../../core/error-codes.js';
import { isImplicitRefusal, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { maxRetryAfterMs } from '../../core/limits.js';
import { judgeRequires } from '../../core/release/requires.js';
import { createStalePolicyError } from '../../core/status/freshness.js';
import { createMissedReleaseError } from '../../core/status/missed-release.js';
import { currentWorkerCodes } from '../../core/status/worker-rules.js';
import { utcTimeText } from '../../core/text/iso-time.js';
import { clockWarnings } from '../../trust/trust-report.js';
import { untrustedProblems } from '../generations/untrusted-releases.js';
import { countConfined, findSandboxError } from '../hooks/sandbox-rules.js';
import { pendingProblems } from '../notify/pending-problems.js';
import { failedAttemptError } from '../select/why-not-now-rules.js';
import { bakeError, failedIn } from '../settled/bake-failure.js';
import { lostContactErrors } from '../settled/contact-rules.js';
import type { Ledger } from '../state/ledger.js';
import { restoreProblems } from '../state/restore-memory.js';
import { withdrawnProblems } from './active-withdrawn.js';
import { isRememberedRefusal } from './refusal-status.js';
import type { AgentFacts, Facts } from './status-facts.js';
import { areWorkersKnown } from './worker-status.js';

interface Judge {
  /** Codes that only this judge reports: a problem of the last cycle with such a code may be over. */
  readonly codes: readonly ErrorCode[];
  /** @returns the current problems with these codes */
  readonly judge: (facts: Facts, last: AgentFacts['last']) => readonly Problem[];
}

const implicitRefusals = (Object.keys(errorCodes) as ErrorCode[]).filter(isImplicitRefusal);

const judges: readonly Judge[] = [
  { codes: ['STATE_VANISHED'], judge: ({ vanished }) => (vanished === undefined ? [] : [vanished]) },
  // No codes, because the problems of the last cycle name the releases that the block stopped.
  { codes: [], judge: ({ ledger }) => blockProblems(ledger) },
  {
    codes: [...currentWorkerCodes],
    judge: ({ host, active }) =>
      active === undefined || !areWorkersKnown(host) ? [] : pendingProblems(host),
  },
  {
    codes: ['RESTORE_UNRECORDED'],
    judge: ({ host, active }) =>
      host.restoreMemory === undefined
        ? []
        : restoreProblems({ restoreMemory: host.restoreMemory }, active?.generation.number),
  },
  { codes: ['BAKE_FAILED'], judge: ({ host, ledger }) => bakeProblems(host, ledger) },
  { codes: ['BAKE_OVERDUE'], judge: overdueProblems },
  { codes: ['CONTACT_LOST'], judge: (facts) => lostContactErrors(facts.ledger, facts).map(problemOf) },
  { codes: ['REPAIRED_BY_PREVIOUS'], judge: ({ damage }) => damage },
  { codes: ['UNTRUSTED_ACTIVE'], judge: ({ host, untrusted }) => untrustedProblems(untrusted, host.config) },
  { codes: ['ACTIVE_WITHDRAWN'], judge: withdrawnProblems },
  { codes: ['SERVER_BUSY'], judge: busyProblems },
  { codes: ['POLICY_STALE'], judge: staleProblems },
  { codes: ['RELEASE_STALE'], judge: missedProblems },
  { codes: ['CLOCK_BEHIND'], judge: clockProblems },
  { codes: ['REQUIRES_UNKNOWN'], judge: requiresProblems },
  // No codes, because commands of the last cycle can have the same codes.
  { codes: [], judge: sandboxProblems },
  // The members `pause`, `waiting` and `refusals` of the report show these.
  { codes: ['ACTIVATION_PAUSED', 'ACTIVATION_PACED', 'REMEMBERED_REFUSAL'], judge: () => [] },
  { codes: implicitRefusals, judge: silenceProblems },
];

const judged: ReadonlySet<ErrorCode> = new Set(judges.flatMap(({ codes }) => codes));

/** @returns each problem once: unreadable state, problems of the last cycle that no judge covers, and those of all judges */
export function findCurrentProblems(facts: Facts, { last, problems }: AgentFacts): Problem[] {
  const { ledger, refusals } = facts.host;
  const met = [...(last?.problems ?? []), ...problems].filter((one) => one !== undefined);
  return distinct([
    ...[ledger.condition(), refusals.condition()].filter((one) => one instanceof WritError).map(problemOf),
    // A judge reports the current damage of a scan. Damage that a start or a cycle found itself is not in the ledger, so it stays.
    ...met.filter(
      (one) =>
        !judged.has(one.code) &&
        !(one.code === 'STATE_DAMAGED' && 'damage' in one.facts) &&
        !isEnded(one, facts.ledger) &&
        !isRememberedRefusal(one, facts.refusals, last),
    ),
    ...facts.unreadable,
    ...judges.flatMap(({ judge }) => judge(facts, last)),
  ]);
}

/** Whether an operator has ended a hold or block of the last cycle since, or it ended by itself. */
function isEnded({ code, facts }: Problem, { holds, blocked }: Ledger): boolean {
  const { bundle, serial } = facts;
  // A block without facts comes from a start that could not restore; the ledger has no record of it.
  if (code === 'ACTIVATION_BLOCKED') return blocked === undefined && Object.keys(facts).length > 0;
  const isHeld = holds.some((one) => one.bundle === bundle && one.serial >= Number(serial));
  return code === 'RELEASE_HELD' && !isHeld;
}

/** A block is in the ledger and in the result of the last cycle. Reports one problem, and prefers the one with a message. */
function distinct(problems: readonly Problem[]): Problem[] {
  return problems.filter((one, index) => {
    const others = problems.filter((other, at) => other.code === one.code && at !== index);
    if (one.message === '') return !others.some((other) => other.message !== '');
    const firstAt = problems.findIndex((other) => other.code === one.code && other.message === one.message);
    return firstAt === index;
  });
}

function blockProblems({ blocked }: Ledger): Problem[] {
  if (blocked === undefined) return [];
  const { reason, atMs } = blocked;
  return [problemOf(new WritError('ACTIVATION_BLOCKED', reason, { facts: { atMs } }))];
}

/** Reports a failed release that is still active because no generation could be restored. */
function bakeProblems(host: Facts['host'], ledger: Ledger): Problem[] {
  const failed = failedIn(ledger);
  return failed.length === 0 ? [] : [problemOf(bakeError(host, failed))];
}

/** Reports a release that no worker uses: its bake time can never end, and only this problem shows that. */
function overdueProblems({ bundles }: Facts): Problem[] {
  return bundles.flatMap(({ bundle, serial, bake }) => {
    if (bake?.untakenSinceMs === undefined) return [];
    const { untakenSinceMs: sinceMs, waitsFor } = bake;
    const groups = waitsFor?.what === 'worker' ? waitsFor.of : undefined;
    const of = groups === undefined ? '' : ` of ${groups.join(', ')}`;
    const text = `no worker${of} has had ${bundle} ${serial} since ${utcTimeText(sinceMs)}: it can neither settle nor fail`;
    const facts = { bundle, serial, sinceMs, ...given({ groups }) };
    return problemOf(new WritError('BAKE_OVERDUE', text, { facts }));
  });
}

/** Reports a release without a verdict, because a command or worker gave no answer, until this or another release is activated. */
function silenceProblems({ ledger: { waiting = {} }, nowMs }: Facts): Problem[] {
  return Object.entries(waiting).flatMap(([bundle, wait]) => {
    const { vain, untilMs = nowMs } = wait;
    if (vain === undefined || !isImplicitRefusal(vain.code)) return [];
    const attempt = { vain, untilMs: untilMs > nowMs ? untilMs : undefined };
    return problemOf(failedAttemptError(bundle, wait, attempt));
  });
}

/** Reports the end of the pause that the server requested; after it, the problem of the last cycle. */
function busyProblems({ ledger, nowMs }: Facts, last: AgentFacts['last']): Problem[] {
  const met = last?.problems.find(({ code }) => code === 'SERVER_BUSY');
  const untilMs = ledger.retryAfterUntilMs ?? 0;
  if (untilMs <= nowMs || untilMs > nowMs + maxRetryAfterMs) return met === undefined ? [] : [met];
  const asked = met?.message ?? 'the server asked for a pause';
  const text = `${asked}; no poll before ${utcTimeText(untilMs)}`;
  return [problemOf(new WritError('SERVER_BUSY', text, { facts: { ...met?.facts, untilMs } }))];
}

function sandboxProblems({ host, ledger }: Facts, last: AgentFacts['last']): Problem[] {
  const status = host.sandbox?.status();
  if (status === undefined) return [];
  const use = { commands: countConfined(host.config), hasWorked: ledger.sandboxWorked === true };
  const error = findSandboxError(status, use);
  const isReported = last?.problems.some(({ code }) => code === error?.code) === true;
  return error === undefined || isReported ? [] : [problemOf(error)];
}

function staleProblems({ freshness, host }: Facts): Problem[] {
  if (freshness.overdueSinceMs === undefined) return [];
  return [problemOf(createStalePolicyError(freshness, host.config.freshness.maxStaleMs))];
}

function missedProblems({ bundles }: Facts): Problem[] {
  return bundles.flatMap(({ bundle, missed }) =>
    missed === undefined || missed.state === 'waiting'
      ? []
      : problemOf(createMissedReleaseError(bundle, missed)),
  );
}

/** Ends with an upgrade of Writ, before any cycle. An active release is left out: it stays in use whatever it requires. */
function requiresProblems({ bundles, host }: Facts): Problem[] {
  const offers = bundles.flatMap(({ bundle, serial, server }) =>
    server === undefined || server.serial === serial ? [] : { bundle, ...server },
  );
  return offers.flatMap((one) => judgeRequires(one, host.features) ?? []).map(problemOf);
}

function clockProblems({ clock, nowMs }: Facts): Problem[] {
  return clockWarnings(clock?.floorMs, nowMs).map(({ code, message, facts }) =>
    problemOf(new WritError(code, message, { facts })),
  );
}
