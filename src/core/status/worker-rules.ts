// The one rule for what may be said of workers: from what is known of each, its group's `min` and `confirm`, to
// `confirmed`, problems and the level of health. Pure; pull, status, health, metrics and systemd say what it says. No word
// of it is better than what is known: over an empty set nothing is confirmed.
import type { ConfirmMode } from '../config/config.js';
import type { ErrorCode, ErrorFacts } from '../errors.js';
import { utcTimeText } from '../text/iso-time.js';

/** What is known of one worker. */
export interface WorkerFacts {
  readonly worker: string;
  readonly state: 'confirmed' | 'notified' | 'refused' | 'unreachable' | 'pending';
  readonly text: string;
  readonly generation: number;
  /** Epoch milliseconds: since when its set does not list it. */
  readonly goneAtMs?: number | undefined;
  readonly tries?: number | undefined;
  readonly nextNotificationAtMs?: number | undefined;
  /** `yes`: its process lives, and it was not reached for three times its time since it was to take the generation. */
  readonly isLost?: 'yes' | undefined;
  /** `yes`: it has answered once, and its process is dead. */
  readonly isDead?: 'yes' | undefined;
  /** Why it could not be reached, where more is known than that. */
  readonly code?: 'PROCESS_UNKNOWN' | 'SUPERVISOR_GAVE_UP' | undefined;
  /** Of one that is gone: how its supervisor gave up, and the command that starts it. */
  readonly failure?: string | undefined;
  /** What its probe said when it was asked again. */
  readonly probed?: ProbedFacts | undefined;
  /** After a way back: from when its probe is asked a second time, and how often that was wrong. */
  readonly secondProbe?: { readonly atMs: number; readonly wrong: number } | undefined;
}

/** The text of a pending worker from the begin of its notification to its result, which a crash can prevent. */
export const unknownAnswerText = 'its notification began, and its answer is not known';

/** Begins the text of a worker that refuses each generation, and counts as unreachable: it was notified, and answered. */
export const refusesAllText = 'refuses what it had taken before: ';

export interface ProbedFacts {
  /** Wrong answers in a row, and the last of them. */
  readonly wrong: number;
  readonly text?: string;
  /** How the last try ended that gave no verdict. */
  readonly silence?: string;
  /** Notifications that wrong answers caused in this generation. */
  readonly notices?: number;
}

/** In one generation: whoever changes it back each time is not outdone by more of them. */
export const maxProbeNotices = 5;

export interface GroupFacts {
  readonly group: string;
  /** So many must be there; 0: it may be empty. */
  readonly min: number;
  readonly confirm: ConfirmMode;
  /** `no`: nothing but an answer of the worker itself could prove what it uses. */
  readonly hasProbe: 'yes' | 'no';
  readonly workers: readonly WorkerFacts[];
  /** Nobody could say who the workers are. */
  readonly unread?: { readonly text: string; readonly sinceMs: number } | undefined;
  /** `yes`: its loader reached nobody, so that nothing there can use what is active. */
  readonly isUnloaded?: 'yes' | undefined;
  /** Its last canary reached nobody, though workers were there: why. */
  readonly canarySilence?: string | undefined;
}

/** `degraded`: a pull ends with 4; `warning`: it ends as well as it did, and says so; both are news of health. */
export type FindingEffect = 'degraded' | 'warning';

const judgedHere = [
  'WORKER_UNREACHABLE',
  'PROCESS_UNKNOWN',
  'SUPERVISOR_GAVE_UP',
  'WORKER_LOST_AFTER',
  'WORKER_UNCONFIRMED',
  'WORKERS_MISSING',
  'PROBE_CHANGED',
  'PROBE_SILENT',
  'CANARY_SILENT',
] as const satisfies readonly ErrorCode[];
const codes = [...judgedHere, 'WORKER_REFUSED'] as const satisfies readonly ErrorCode[];

/** The codes of this rule. */
export const workerCodes: ReadonlySet<ErrorCode> = new Set(codes);
/** Those that nobody else says: a refusal may also be that of a release which is gone again. */
export const standingWorkerCodes: ReadonlySet<ErrorCode> = new Set(judgedHere);

export interface WorkerFinding {
  readonly code: (typeof codes)[number];
  readonly group: string;
  readonly effect: FindingEffect;
  readonly level: 'critical' | 'warning';
  readonly text: string;
  readonly facts: ErrorFacts;
}

/** @returns true when somebody is there, and everybody who must be proved what is active */
export function isConfirmed(groups: readonly GroupFacts[]): boolean {
  const there = groups.flatMap(living);
  return (
    there.length > 0 &&
    there.every(({ state }) => state === 'confirmed') &&
    groups.every(
      (group) =>
        group.unread === undefined && group.isUnloaded !== 'yes' && living(group).length >= group.min,
    )
  );
}

type Rule = (group: GroupFacts) => readonly WorkerFinding[];

const rules: readonly Rule[] = [
  ...[unread, unloaded, pending, refused, changed],
  ...[silent, canarySilent, unproven, missing, givenUp],
];

/** @returns everything that is wrong with the workers of the groups, in their order */
export function judgeWorkers(groups: readonly GroupFacts[]): WorkerFinding[] {
  return rules.flatMap((rule) => groups.flatMap((group) => rule(group)));
}

function living({ workers }: GroupFacts): readonly WorkerFacts[] {
  return workers.filter((one) => one.goneAtMs === undefined);
}

function unread({ group, unread: set }: GroupFacts): WorkerFinding[] {
  if (set === undefined) return [];
  const { text, sinceMs } = set;
  return [degraded('WORKER_UNREACHABLE', group, text, { group, sinceMs })];
}

/** Where a worker is there, it says so itself. */
function unloaded(facts: GroupFacts): WorkerFinding[] {
  const { group, isUnloaded } = facts;
  if (isUnloaded !== 'yes' || living(facts).some(isPending)) return [];
  const text = `${group}: its loader reached no worker: the active generation is not loaded`;
  return [degraded('WORKER_UNREACHABLE', group, text, { group })];
}

function isPending({ state }: WorkerFacts): boolean {
  return state === 'unreachable' || state === 'pending';
}

/** It could not be notified of what it is to use, or has just appeared. */
function pending(facts: GroupFacts): WorkerFinding[] {
  const { group } = facts;
  // All of it was up, and is dead: as bad as one that nobody lists any more, whatever was published since.
  const level = living(facts).every(({ isDead }) => isDead === 'yes') ? 'critical' : 'warning';
  return living(facts)
    .filter((one) => isPending(one) && !isDoubtedAlone(one))
    .map(({ worker, text, generation, tries, nextNotificationAtMs, isLost, isDead, code }) => {
      const facts = { group, worker, generation, tries, nextNotificationAtMs };
      if (isLost !== 'yes') {
        const named = code ?? (isDead === 'yes' ? 'WORKERS_MISSING' : 'WORKER_UNREACHABLE');
        const found = degraded(named, group, `${group}/${worker}: ${text}`, facts);
        return { ...found, level: code === 'SUPERVISOR_GAVE_UP' ? 'critical' : level };
      }
      const lost = `${group}/${worker} runs, but has not answered since generation ${generation}: ${text}`;
      return { ...degraded('WORKER_LOST_AFTER', group, lost, facts), level: 'critical' };
    });
}

/** It is notified because of its probe, which says what is wrong. */
function isDoubtedAlone({ state, probed }: WorkerFacts): boolean {
  return state === 'pending' && (probed?.wrong ?? 0) > 0;
}

/** Whoever refuses what is active, and could not be helped by going back. */
function refused(facts: GroupFacts): WorkerFinding[] {
  const { group } = facts;
  return living(facts)
    .filter(({ state }) => state === 'refused')
    .map(({ worker, text, generation }) =>
      degraded('WORKER_REFUSED', group, `${group}/${worker}: ${text}`, { group, worker, generation }),
    );
}

/** It had proved it, and its probe says that it uses something else by now. One question may be about many workers. */
function changed(facts: GroupFacts): WorkerFinding[] {
  const { group } = facts;
  const doubted = living(facts).filter(({ probed }) => probed !== undefined && probed.wrong > 0);
  return [...new Set(doubted.map(({ probed }) => probed?.text ?? group))].map((text) => {
    const isGivenUp = doubted.some((one) => one.probed?.text === text && isNotifiedInVain(one));
    const why = isGivenUp ? '; it was notified several times: something else changes it' : '';
    const found = degraded('PROBE_CHANGED', group, `${text}${why}`, { group });
    return isGivenUp ? { ...found, level: 'critical' } : found;
  });
}

/** The last notification that its probe may cause is done. */
function isNotifiedInVain({ state, probed, secondProbe }: WorkerFacts): boolean {
  const isInVain = (probed?.notices ?? 0) >= maxProbeNotices || (secondProbe?.wrong ?? 0) > 1;
  return state !== 'pending' && isInVain;
}

/** Nobody knows: what was proved gets older. */
function silent(facts: GroupFacts): WorkerFinding[] {
  const { group } = facts;
  const texts = living(facts).flatMap(({ probed }) =>
    probed?.silence === undefined || probed.wrong > 0 ? [] : [probed.silence],
  );
  return [...new Set(texts)].map((text) => {
    return { ...degraded('PROBE_SILENT', group, text, { group }), effect: 'warning' };
  });
}

function canarySilent({ group, canarySilence }: GroupFacts): WorkerFinding[] {
  if (canarySilence === undefined) return [];
  return [{ ...degraded('CANARY_SILENT', group, canarySilence, { group }), effect: 'warning' }];
}

/** The next poll proves nothing: it stays so until a probe, an answer, or `confirm: accept`. */
function unproven(facts: GroupFacts): WorkerFinding[] {
  const { group, confirm, hasProbe } = facts;
  const there = living(facts);
  // Of whom the probe refuses by now is another finding.
  const open = there.filter(({ state, probed }) => state === 'notified' && !probed?.wrong);
  if (open.length === 0 || confirm === 'accept') return [];
  const notified = open.filter((one) => one.secondProbe === undefined).length;
  if (notified === 0) return [provedOnce(group, open)];
  const found = degraded('WORKER_UNCONFIRMED', group, unprovenText(group, notified, there.length, hasProbe), {
    group,
  });
  return [confirm === 'required' ? found : { ...found, effect: 'warning' }];
}

/** No reason for `degraded`: its probe was right once. */
function provedOnce(group: string, workers: readonly WorkerFacts[]): WorkerFinding {
  const atMs = Math.min(...workers.map(({ secondProbe }) => secondProbe?.atMs ?? Number.POSITIVE_INFINITY));
  const names = workers.map(({ worker }) => `${group}/${worker}`).join(', ');
  const text = `${names}: proved once after a way back; its probe is asked again from ${utcTimeText(atMs)}`;
  return { ...degraded('WORKER_UNCONFIRMED', group, text, { group }), effect: 'warning' };
}

function unprovenText(group: string, notified: number, all: number, hasProbe: 'yes' | 'no'): string {
  const who = `${notified} of ${all} workers of group ${group} were notified and proved nothing`;
  return hasProbe === 'yes'
    ? `${who}; its probe has not shown it`
    : `${who}: a \`probe\` would show what they use`;
}

/** A set that nobody could read is another finding than one with too few workers. */
function missing(facts: GroupFacts): WorkerFinding[] {
  const { group, min, workers, unread: set } = facts;
  const actual = living(facts).length;
  const gone = workers.length - actual;
  if (set !== undefined || (actual >= min && gone === 0)) return [];
  const counts = { group, expected: min, actual };
  if (actual >= min) {
    const text = `${gone} of ${workers.length} workers of group ${group} ended; ${actual} are left`;
    return [{ ...degraded('WORKERS_MISSING', group, text, counts), effect: 'warning' }];
  }
  const text =
    actual === 0
      ? `group ${group} has no worker${gone === 0 ? '' : ' any more'}: at least ${min} required`
      : `group ${group} has ${actual} workers, at least ${min} required`;
  const found = degraded('WORKERS_MISSING', group, text, counts);
  // All of it was up, and is gone: nobody serves.
  return [actual === 0 && gone > 0 ? { ...found, level: 'critical' } : found];
}

/** A group that may do without it says so as a warning. */
function givenUp(facts: GroupFacts): WorkerFinding[] {
  const { group, min, workers } = facts;
  return workers.flatMap(({ worker, failure }): WorkerFinding[] => {
    if (failure === undefined) return [];
    const found = degraded('SUPERVISOR_GAVE_UP', group, `${group}/${worker}: ${failure}`, { group, worker });
    return [living(facts).length < min ? { ...found, level: 'critical' } : { ...found, effect: 'warning' }];
  });
}

function degraded(
  code: WorkerFinding['code'],
  group: string,
  text: string,
  facts: ErrorFacts,
): WorkerFinding {
  return { code, group, effect: 'degraded', level: 'warning', text, facts };
}
