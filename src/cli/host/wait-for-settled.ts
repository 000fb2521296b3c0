// `writ pull --settled`: waits until the active releases have settled, or one was rolled back. Decides the interval and the answer.
// The agent observes the workers; in a standalone run each observation of this command does.
import { isDeepStrictEqual } from 'node:util';
import { given } from '../../core/given.js';
import {
  judgeAwaitedReleases,
  listAwaitedReleases,
  type SettleVerdict,
} from '../../core/status/settled-verdict.js';
import type { BakeWait, StatusReport } from '../../core/status/status.js';
import type { Answer, CommandContext } from '../console/command.js';
import { bakeWaitText, roughly } from '../show/show-text.js';

export interface SettledWaitOptions {
  /** The answer of the preceding pull: its lines and details are kept. */
  readonly answer: Answer;
  /** Undefined: three times the longest bake time. */
  readonly waitMs?: number;
  readonly context: Pick<CommandContext, 'clock' | 'reporter' | 'signal'>;
  /** @returns the status and its source; without an agent the observation itself has judged the bake times */
  readonly observe: () => Promise<SettledWaitObservation>;
}

export interface SettledWaitObservation {
  readonly report: StatusReport;
  readonly by: 'agent' | 'command';
  /** In a standalone run: for each bundle whose bake time does not pass, the reason. */
  readonly waits?: ReadonlyMap<string, BakeWait>;
}

/** As an agent observes its workers. */
const minIntervalMs = 2000;
/** A standalone run opens the host for each observation. */
const maxIntervalMs = 10_000;
/** A process that runs for less than a third of the bake time is evidence, so each one must be observed. */
const intervalShareOfBake = 0.1;
/** An agent that restores reports the failure until its workers have answered. */
const restoreTimeoutMs = 120_000;
const minDelayMs = 500;
const defaultWaitFactor = 3;
/** Of workers in one line of the answer. */
const maxNames = 3;

/**
 * @returns exit code 0 if all have settled, also unobserved; 4 if they settled and a worker is not notified; 5 if one was rolled back;
 * 6 if one failed and could not be restored; 8 after the timeout; 130 after a signal
 */
export async function waitForSettled(options: SettledWaitOptions): Promise<Answer> {
  const { clock, signal, reporter } = options.context;
  const startMs = clock.monotonicMs();
  let observation = await options.observe();
  const { report: first } = observation;
  let watched = listAwaitedReleases(first);
  const waitMs = options.waitMs ?? defaultWaitFactor * longestBakeMs(first);
  let failedAtMs: number | undefined;
  for (;;) {
    const nowMs = clock.monotonicMs();
    const { by, waits } = observation;
    const judged = judgeAwaitedReleases(watched, observation.report).map((release) =>
      by === 'agent' ? release : withWaitOfCommand(release, waits?.get(release.bundle)),
    );
    watched = judged;
    const isFailed = judged.some(({ state }) => state === 'failed');
    failedAtMs = isFailed ? (failedAtMs ?? nowMs) : undefined;
    const isOver = nowMs - startMs >= waitMs;
    const isStuck =
      failedAtMs !== undefined && (observation.by === 'command' || nowMs - failedAtMs >= restoreTimeoutMs);
    const end = endOf(judged, { isOver, isStuck });
    if (end !== undefined || signal.aborted) {
      reporter.drop('settle');
      const { report } = observation;
      return settledAnswer(options.answer, { end: end ?? 'interrupted', judged, first, report });
    }
    reporter.begin('settle', judged.map(releaseText).join('; '));
    const leftMs = waitMs - (nowMs - startMs);
    const intervalMs = observation.by === 'agent' ? minIntervalMs : commandIntervalMs(observation.report);
    await clock.sleep(Math.max(1, Math.min(nextObservationDelayMs(judged, intervalMs), leftMs)), signal);
    if (!signal.aborted) observation = await options.observe();
  }
}

/**
 * The answer to a pull that put nothing into use: its outcome and exit code answer the caller, because an older release
 * that settles meanwhile does not show that the newer one works.
 * @param report the status after the pull; undefined where it cannot be read
 */
export function answerWithoutWait(answer: Answer, report: StatusReport | undefined): Answer {
  const releases = report === undefined ? [] : judgeAwaitedReleases(listAwaitedReleases(report), report);
  const baking = releases.filter(({ state }) => state === 'baking').map(releaseText);
  return {
    ...answer,
    details: { ...answer.details, releases, pull: pullDetails(answer) },
    lines: [...answer.lines, ...(baking.length === 0 ? [] : [`  not waited for: ${baking.join('; ')}`])],
  };
}

function pullDetails(answer: Answer): Readonly<Record<string, unknown>> {
  return { outcome: answer.outcome, exitCode: answer.exitCode, ...answer.details };
}

/** Replaces the reason of the report: this command observes the workers, so a bake time waits for an agent only if `waitsFor` names it. */
function withWaitOfCommand(
  { waitsFor: _, ...judged }: SettleVerdict,
  waitsFor: BakeWait | undefined,
): SettleVerdict {
  return judged.state === 'baking' ? { ...judged, ...given({ waitsFor }) } : judged;
}

/** The interval, or less if a bake time ends sooner. The end of a bake time that does not pass is not counted. */
function nextObservationDelayMs(judged: readonly SettleVerdict[], intervalMs: number): number {
  const left = judged.flatMap(({ leftMs, waitsFor }) =>
    leftMs === undefined || waitsFor !== undefined ? [] : [leftMs],
  );
  return Math.max(minDelayMs, Math.min(intervalMs, ...left));
}

/** A tenth of the shortest bake time that runs, within bounds. */
function commandIntervalMs({ bundles }: StatusReport): number {
  const shares = bundles.flatMap(({ bake }) => {
    return bake?.state !== 'baking' || bake.forMs === undefined ? [] : [intervalShareOfBake * bake.forMs];
  });
  return Math.max(minIntervalMs, Math.min(maxIntervalMs, ...shares));
}

function longestBakeMs({ bundles }: StatusReport): number {
  return Math.max(0, ...bundles.map(({ bake }) => bake?.forMs ?? bake?.leftMs ?? 0));
}

type SettleEnd = 'settled' | 'rolled-back' | 'blocked' | 'baking' | 'interrupted';

function endOf(
  judged: readonly SettleVerdict[],
  { isOver, isStuck }: { readonly isOver: boolean; readonly isStuck: boolean },
): SettleEnd | undefined {
  const hasRelease = (state: SettleVerdict['state']): boolean =>
    judged.some((release) => release.state === state);
  if (hasRelease('taken-back')) return 'rolled-back';
  if (hasRelease('failed')) return isStuck || isOver ? 'blocked' : undefined;
  if (hasRelease('baking')) return isOver ? 'baking' : undefined;
  return 'settled';
}

const headlines: Readonly<Record<SettleEnd, string>> = {
  settled: 'SETTLED  ',
  'rolled-back': 'ROLLED BACK  ',
  blocked: 'BLOCKED  nothing could be restored: ',
  baking: 'BAKING  ',
  interrupted: 'INTERRUPTED  bake times go on: ',
};

const exitCodes: Readonly<Record<SettleEnd, number>> = {
  settled: 0,
  'rolled-back': 5,
  blocked: 6,
  baking: 8,
  interrupted: 130,
};

function settledAnswer(
  answer: Answer,
  {
    end,
    judged,
    ...reports
  }: SettledWaitReports & {
    readonly end: SettleEnd;
    readonly judged: readonly SettleVerdict[];
  },
): Answer {
  const { report } = reports;
  // A worker that the pull did not notify may be notified by now.
  const unconfirmedExitCode =
    end === 'settled' && answer.exitCode !== 0 && !isInUse(report) ? answer.exitCode : undefined;
  const { code: codeOfPull, hint, fromGeneration, tries } = answer.details;
  const isUnconfirmed = unconfirmedExitCode !== undefined;
  const code = isUnconfirmed ? codeOfPull : codeOf(end, judged);
  const { generation, confirmed } = report;
  const texts = judged.length === 0 ? ['nothing is active'] : judged.map(releaseText);
  return {
    outcome: end,
    exitCode: unconfirmedExitCode ?? exitCodes[end],
    details: {
      ...given({ code, hint: isUnconfirmed ? hint : undefined, fromGeneration, generation, tries }),
      ...{ confirmed, changed: generation !== fromGeneration, releases: judged },
      pull: pullDetails(answer),
    },
    lines: [`${headlines[end]}${texts.join('; ')}`, ...linesOfPull(answer, reports)],
    next: end === 'settled' && !isUnconfirmed ? undefined : 'writ status',
    docs: isUnconfirmed ? answer.docs : undefined,
  };
}

/** True where every worker has confirmed the policy, or was notified of it and no group needs more than that (`confirm: accept`). */
function isInUse({ confirmed, workers, groups = [] }: StatusReport): boolean {
  const areNotified = workers.every(({ state }) => state === 'confirmed' || state === 'notified');
  return confirmed || (areNotified && groups.every(({ findings }) => findings.length === 0));
}

interface SettledWaitReports {
  /** The status right after the pull. */
  readonly first: StatusReport;
  /** The status at the end of the wait. */
  readonly report: StatusReport;
}

/** True while the answer of the pull describes the host as it is. */
function isSameState({ details, exitCode }: Answer, { first, report }: SettledWaitReports): boolean {
  const isCompleted = exitCode !== 0 && isInUse(report);
  return (
    !isCompleted &&
    details['generation'] === report.generation &&
    details['confirmed'] === report.confirmed &&
    isDeepStrictEqual(listMissed(first), listMissed(report))
  );
}

/** @returns the workers that do not use the policy, each with its group */
function listMissed({ workers }: StatusReport): string[] {
  const missed = workers.filter(({ state }) => state !== 'confirmed' && state !== 'notified');
  return missed.map(({ group, worker }) => `${group}/${worker}`).sort();
}

/** The lines of the pull; below the present state where that has changed since. */
function linesOfPull(answer: Answer, reports: SettledWaitReports): string[] {
  if (isSameState(answer, reports)) return answer.lines.map((line) => `  ${line}`);
  const { report } = reports;
  const { generation, confirmed, bundles } = report;
  const active = bundles.flatMap(({ bundle, serial }) => (serial === undefined ? [] : `${bundle} ${serial}`));
  const now =
    generation === undefined
      ? 'no policy is active'
      : `generation ${generation} is active (${active.join('; ')})`;
  const use = confirmed ? ', confirmed by every worker' : ', and every worker was notified';
  const missed = listMissed(report);
  const more = missed.length > maxNames ? ` and ${missed.length - maxNames} more` : '';
  const pending = missed.length === 0 ? '' : `, not used by ${missed.slice(0, maxNames).join(', ')}${more}`;
  return [
    `  now: ${now}${isInUse(report) ? use : pending}`,
    '  at the end of the pull:',
    ...answer.lines.map((line) => `    ${line}`),
  ];
}

/** @returns the code of the answer: a rollback by an operator or a withdrawal by the publisher is no failure of the release */
function codeOf(end: SettleEnd, judged: readonly SettleVerdict[]): string | undefined {
  if (end === 'blocked') return 'BAKE_FAILED';
  if (end !== 'rolled-back') return undefined;
  const causes = judged.flatMap(({ state, cause }) => (state === 'taken-back' ? (cause ?? []) : []));
  return causes.every((cause) => isDeliberate(cause)) ? causes[0] : 'BAKE_FAILED';
}

function isDeliberate(cause: string | undefined): boolean {
  return cause === 'RELEASE_HELD' || cause === 'RELEASE_WITHDRAWN';
}

function releaseText({ bundle, serial, state, leftMs = 0, waitsFor, cause, text }: SettleVerdict): string {
  const name = `${bundle} ${serial}`;
  const reason = cause === undefined ? '' : ` [${cause}] ${text?.split('\n', 1)[0] ?? ''}`;
  switch (state) {
    case 'baking':
      return `${name} bakes, ${waitsFor === undefined ? `${roughly(leftMs)} left` : `and waits for ${bakeWaitText(waitsFor)}`}`;
    case 'settled':
      return `${name} settled`;
    case 'unobserved':
      return `${name} settled, but its bake time was not observed`;
    case 'none':
      return `${name} has no bake time`;
    case 'taken-back':
      if (cause === undefined) return `${name} is not active any more`;
      return isDeliberate(cause) ? `${name} ${text}` : `${name} was taken back${reason}`;
    case 'failed':
      return `${name} failed${reason}`;
  }
}
