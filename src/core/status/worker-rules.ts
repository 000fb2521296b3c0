// The one decision about workers: from the facts of each worker, and the `min` and `confirm` of its group, to `confirmed`,
// problems and health levels. Pull, status, health, metrics and systemd report its result. It claims no more than the facts
// show: a host without workers is never confirmed.
import type { ConfirmMode } from '../config/config.js';
import type { ErrorCode, ErrorFacts } from '../errors.js';
import { utcTimeText } from '../text/iso-time.js';

/** The facts about one worker. */
export interface WorkerFacts {
  readonly worker: string;
  readonly state: 'confirmed' | 'notified' | 'refused' | 'unreachable' | 'pending';
  readonly text: string;
  readonly generation: number;
  /** Epoch milliseconds: when the worker left its group; undefined for a member. */
  readonly goneAtMs?: number | undefined;
  readonly tries?: number | undefined;
  readonly nextNotificationAtMs?: number | undefined;
  /** True: its process is alive, and the worker has been unreachable for three timeouts since it should load the generation. */
  readonly isLost?: boolean | undefined;
  /** True: the worker answered before, and its process is dead. */
  readonly isDead?: boolean | undefined;
  /** A more exact cause of an unreachable worker, if it is known. */
  readonly code?: 'PROCESS_UNKNOWN' | 'SUPERVISOR_GAVE_UP' | undefined;
  /** For a departed worker: how its supervisor gave up, and the command that starts it. */
  readonly failure?: string | undefined;
  /** Results of its repeated probe. */
  readonly probed?: RepeatedProbeFacts | undefined;
  /** After a restore: the time of the second probe, and how many of its answers were wrong. */
  readonly secondProbe?: { readonly atMs: number; readonly wrong: number } | undefined;
}

/** The text of a worker after its notification began, because a crash can prevent the result. */
export const unknownAnswerText = 'its notification began, and its answer is not known';

/** Begins the text of a worker that refuses every generation. It counts as unreachable, although it answered. */
export const refusesAllText = 'refuses what it had taken before: ';

export interface RepeatedProbeFacts {
  /** Consecutive wrong answers; `text` is the last of them. */
  readonly wrong: number;
  readonly text?: string;
  /** Result of the last probe without a verdict. */
  readonly silence?: string;
  /** How many times wrong answers caused a notification in this generation. */
  readonly notices?: number;
}

/** In one generation, because more notifications do not stop a process that changes the worker back each time. */
export const maxProbeNotices = 5;

export interface WorkerGroupFacts {
  readonly group: string;
  /** Required number of members; 0: the group may be empty. */
  readonly min: number;
  readonly confirm: ConfirmMode;
  /** False: only an answer of the worker itself can confirm it. */
  readonly hasProbe: boolean;
  readonly workers: readonly WorkerFacts[];
  /** Why the members of the group could not be listed. */
  readonly listFailure?: { readonly text: string; readonly sinceMs: number } | undefined;
  /** True: its loader reached no worker, so that no worker can use the active generation. */
  readonly isUnloaded?: boolean | undefined;
  /** Why its last canary reached no worker, although the group had members. */
  readonly canarySilence?: string | undefined;
}

/** `degraded`: a pull exits 4. `warning`: a pull reports it and keeps its exit code. Both are findings of health. */
export type FindingEffect = 'degraded' | 'warning';

const currentCodes = [
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
const findingCodes = [...currentCodes, 'WORKER_REFUSED'] as const satisfies readonly ErrorCode[];

/** The codes of this rule. */
export const workerCodes: ReadonlySet<ErrorCode> = new Set(findingCodes);
/** The codes that only this rule reports. WORKER_REFUSED can also name a release that was restored. */
export const currentWorkerCodes: ReadonlySet<ErrorCode> = new Set(currentCodes);

export interface WorkerFinding {
  readonly code: (typeof findingCodes)[number];
  readonly group: string;
  readonly effect: FindingEffect;
  readonly level: 'critical' | 'warning';
  readonly text: string;
  readonly facts: ErrorFacts;
}

/** @returns true if there are members, each of them is confirmed, and each group is listed, loaded and has `min` members */
export function isConfirmed(groups: readonly WorkerGroupFacts[]): boolean {
  const members = groups.flatMap(membersOf);
  return (
    members.length > 0 &&
    members.every(({ state }) => state === 'confirmed') &&
    groups.every(
      (group) =>
        group.listFailure === undefined && group.isUnloaded !== true && membersOf(group).length >= group.min,
    )
  );
}

type Rule = (group: WorkerGroupFacts) => readonly WorkerFinding[];

const rules: readonly Rule[] = [
  ...[findUnlistedGroup, findUnloadedGroup, findPendingWorkers, findRefusals, findChangedProbes],
  ...[findSilentProbes, findSilentCanary, findUnconfirmedWorkers, findMissingWorkers, findAbandonedWorkers],
];

/** @returns all problems of the workers; by rule, then in the order of the groups */
export function judgeWorkers(groups: readonly WorkerGroupFacts[]): WorkerFinding[] {
  return rules.flatMap((rule) => groups.flatMap((group) => rule(group)));
}

function membersOf({ workers }: WorkerGroupFacts): readonly WorkerFacts[] {
  return workers.filter((one) => one.goneAtMs === undefined);
}

function findUnlistedGroup({ group, listFailure: failure }: WorkerGroupFacts): WorkerFinding[] {
  if (failure === undefined) return [];
  const { text, sinceMs } = failure;
  return [createFinding('WORKER_UNREACHABLE', group, text, { group, sinceMs })];
}

/** Reports nothing for a group with a pending member, because that member has its own finding. */
function findUnloadedGroup(facts: WorkerGroupFacts): WorkerFinding[] {
  const { group, isUnloaded } = facts;
  if (isUnloaded !== true || membersOf(facts).some(isPending)) return [];
  const text = `${group}: its loader reached no worker: the active generation is not loaded`;
  return [createFinding('WORKER_UNREACHABLE', group, text, { group })];
}

function isPending({ state }: WorkerFacts): boolean {
  return state === 'unreachable' || state === 'pending';
}

/** Finds workers that are unreachable or were not notified yet. */
function findPendingWorkers(facts: WorkerGroupFacts): WorkerFinding[] {
  const { group } = facts;
  // A group with only dead members is critical, as a group that lost all its members is.
  const level = membersOf(facts).every(({ isDead }) => isDead === true) ? 'critical' : 'warning';
  return membersOf(facts)
    .filter((one) => isPending(one) && !isPendingForProbe(one))
    .map(({ worker, text, generation, tries, nextNotificationAtMs, isLost, isDead, code }) => {
      const facts = { group, worker, generation, tries, nextNotificationAtMs };
      if (isLost !== true) {
        const named = code ?? (isDead === true ? 'WORKERS_MISSING' : 'WORKER_UNREACHABLE');
        const found = createFinding(named, group, `${group}/${worker}: ${text}`, facts);
        return { ...found, level: code === 'SUPERVISOR_GAVE_UP' ? 'critical' : level };
      }
      const lost = `${group}/${worker} runs, but has not answered since generation ${generation}: ${text}`;
      return { ...createFinding('WORKER_LOST_AFTER', group, lost, facts), level: 'critical' };
    });
}

/** Such a worker is notified because of a wrong probe, which has its own finding. */
function isPendingForProbe({ state, probed }: WorkerFacts): boolean {
  return state === 'pending' && (probed?.wrong ?? 0) > 0;
}

/** Finds workers that refuse the active generation, and for which no generation was restored. */
function findRefusals(facts: WorkerGroupFacts): WorkerFinding[] {
  const { group } = facts;
  return membersOf(facts)
    .filter(({ state }) => state === 'refused')
    .map(({ worker, text, generation }) =>
      createFinding('WORKER_REFUSED', group, `${group}/${worker}: ${text}`, { group, worker, generation }),
    );
}

/**
 * Finds suspect workers: they were confirmed, and their probe shows another generation now. Workers with the same text are one
 * finding, because one probe can cover many workers.
 */
function findChangedProbes(facts: WorkerGroupFacts): WorkerFinding[] {
  const { group } = facts;
  const suspects = membersOf(facts).filter(({ probed }) => probed !== undefined && probed.wrong > 0);
  return [...new Set(suspects.map(({ probed }) => probed?.text ?? group))].map((text) => {
    const isGivenUp = suspects.some((one) => one.probed?.text === text && hasExhaustedNotifications(one));
    const why = isGivenUp ? '; it was notified several times: something else changes it' : '';
    const found = createFinding('PROBE_CHANGED', group, `${text}${why}`, { group });
    return isGivenUp ? { ...found, level: 'critical' } : found;
  });
}

/** True after the last notification that a wrong probe may cause. */
function hasExhaustedNotifications({ state, probed, secondProbe }: WorkerFacts): boolean {
  const isExhausted = (probed?.notices ?? 0) >= maxProbeNotices || (secondProbe?.wrong ?? 0) > 1;
  return state !== 'pending' && isExhausted;
}

/** Finds probes without a verdict. This is a warning, because the last verdict was right and only gets older. */
function findSilentProbes(facts: WorkerGroupFacts): WorkerFinding[] {
  const { group } = facts;
  const texts = membersOf(facts).flatMap(({ probed }) =>
    probed?.silence === undefined || probed.wrong > 0 ? [] : [probed.silence],
  );
  return [...new Set(texts)].map((text) => {
    return { ...createFinding('PROBE_SILENT', group, text, { group }), effect: 'warning' };
  });
}

function findSilentCanary({ group, canarySilence }: WorkerGroupFacts): WorkerFinding[] {
  if (canarySilence === undefined) return [];
  return [{ ...createFinding('CANARY_SILENT', group, canarySilence, { group }), effect: 'warning' }];
}

/** Finds workers that only a probe, an answer or `confirm: accept` can clear, because a poll confirms no worker. */
function findUnconfirmedWorkers(facts: WorkerGroupFacts): WorkerFinding[] {
  const { group, confirm, hasProbe } = facts;
  const members = membersOf(facts);
  // A wrong probe is another finding.
  const open = members.filter(({ state, probed }) => state === 'notified' && !probed?.wrong);
  if (open.length === 0 || confirm === 'accept') return [];
  const notified = open.filter((one) => one.secondProbe === undefined).length;
  if (notified === 0) return [warnOfSecondProbe(group, open)];
  const found = createFinding(
    'WORKER_UNCONFIRMED',
    group,
    formatUnconfirmed(group, notified, members.length, hasProbe),
    { group },
  );
  return [confirm === 'required' ? found : { ...found, effect: 'warning' }];
}

/** A warning and not `degraded`, because the probe was right once after the restore. */
function warnOfSecondProbe(group: string, workers: readonly WorkerFacts[]): WorkerFinding {
  const atMs = Math.min(...workers.map(({ secondProbe }) => secondProbe?.atMs ?? Number.POSITIVE_INFINITY));
  const names = workers.map(({ worker }) => `${group}/${worker}`).join(', ');
  const text = `${names}: confirmed once after a restore; its probe runs again from ${utcTimeText(atMs)}`;
  return { ...createFinding('WORKER_UNCONFIRMED', group, text, { group }), effect: 'warning' };
}

function formatUnconfirmed(group: string, notified: number, all: number, hasProbe: boolean): string {
  const subject = `${notified} of ${all} workers of group ${group} were notified and proved nothing`;
  return hasProbe
    ? `${subject}; its probe has not shown it`
    : `${subject}: a \`probe\` would show what they use`;
}

/** Reports nothing for a group without a member list, because that is another finding. */
function findMissingWorkers(facts: WorkerGroupFacts): WorkerFinding[] {
  const { group, min, workers, listFailure: failure } = facts;
  const actual = membersOf(facts).length;
  const gone = workers.length - actual;
  if (failure !== undefined || (actual >= min && gone === 0)) return [];
  const counts = { group, expected: min, actual };
  if (actual >= min) {
    const text = `${gone} of ${workers.length} workers of group ${group} ended; ${actual} are left`;
    return [{ ...createFinding('WORKERS_MISSING', group, text, counts), effect: 'warning' }];
  }
  const text =
    actual === 0
      ? `group ${group} has no worker${gone === 0 ? '' : ' any more'}: at least ${min} required`
      : `group ${group} has ${actual} workers, at least ${min} required`;
  const found = createFinding('WORKERS_MISSING', group, text, counts);
  // Every worker of the group has ended, so that the group serves no request.
  return [actual === 0 && gone > 0 ? { ...found, level: 'critical' } : found];
}

/** Finds workers that their supervisor does not restart any more. A warning if the group still has `min` members. */
function findAbandonedWorkers(facts: WorkerGroupFacts): WorkerFinding[] {
  const { group, min, workers } = facts;
  return workers.flatMap(({ worker, failure }): WorkerFinding[] => {
    if (failure === undefined) return [];
    const found = createFinding('SUPERVISOR_GAVE_UP', group, `${group}/${worker}: ${failure}`, {
      group,
      worker,
    });
    return [
      membersOf(facts).length < min ? { ...found, level: 'critical' } : { ...found, effect: 'warning' },
    ];
  });
}

function createFinding(
  code: WorkerFinding['code'],
  group: string,
  text: string,
  facts: ErrorFacts,
): WorkerFinding {
  return { code, group, effect: 'degraded', level: 'warning', text, facts };
}
