// `writ pull --settled`: waits until the releases that are active have settled, or one of them was taken back. Owns how often
// it looks and what it answers; who observes the workers is the agent, or without one each look itself.
import { given } from '../../core/given.js';
import { type JudgedRelease, judgeReleases, watchedReleases } from '../../core/status/settled-verdict.js';
import type { BakeWait, StatusReport } from '../../core/status/status.js';
import type { Answer, CommandContext } from '../console/command.js';
import { bakeWaitText, roughly } from '../show/show-text.js';

export interface SettledWaitOptions {
  /** What the pull before answered: its lines and details stay. */
  readonly answer: Answer;
  /** Left out: three times the longest bake time. */
  readonly waitMs?: number;
  readonly context: Pick<CommandContext, 'clock' | 'reporter' | 'signal'>;
  /** @returns the status, and whether an agent sent it; without one, the look has judged the bakes itself */
  readonly observe: () => Promise<BakeObservation>;
}

export interface BakeObservation {
  readonly report: StatusReport;
  readonly by: 'agent' | 'command';
  /** Of a command: what each bake time waits for that does not pass, by the names of the bundles. */
  readonly waits?: ReadonlyMap<string, BakeWait>;
}

/** Of an agent, which looks at its workers as often; a command opens the host anew for each look. */
const observeIntervalMs = { agent: 2000, command: 10_000 } as const;
/** An agent that restores shows the failure until its workers have answered. */
const restoreTimeoutMs = 120_000;
const minDelayMs = 500;
const defaultWaitFactor = 3;

/**
 * @returns exit code 0 when all have settled, also unobserved, 4 when they settled and a worker is not notified; 5 taken back;
 * 6 failed, with no way back; 8 when the time is over
 */
export async function waitForSettled(options: SettledWaitOptions): Promise<Answer> {
  const { clock, signal, reporter } = options.context;
  const startMs = clock.monotonicMs();
  let seen = await options.observe();
  let watched = watchedReleases(seen.report);
  const waitMs = options.waitMs ?? defaultWaitFactor * longestBakeMs(seen.report);
  let failedAtMs: number | undefined;
  for (;;) {
    const nowMs = clock.monotonicMs();
    const { by, waits } = seen;
    const judged = judgeReleases(watched, seen.report).map((one) =>
      by === 'agent' ? one : withWaitOfCommand(one, waits?.get(one.bundle)),
    );
    watched = judged;
    const isFailed = judged.some(({ state }) => state === 'failed');
    failedAtMs = isFailed ? (failedAtMs ?? nowMs) : undefined;
    const isOver = nowMs - startMs >= waitMs;
    const isStuck =
      failedAtMs !== undefined && (seen.by === 'command' || nowMs - failedAtMs >= restoreTimeoutMs);
    const end = endOf(judged, { isOver, isStuck });
    if (end !== undefined || signal.aborted) {
      reporter.drop('settle');
      return settledAnswer(options.answer, { end: end ?? 'interrupted', judged, report: seen.report });
    }
    reporter.begin('settle', judged.map(releaseText).join('; '));
    const leftMs = waitMs - (nowMs - startMs);
    await clock.sleep(Math.max(1, Math.min(nextObservationDelayMs(judged, seen.by), leftMs)), signal);
    if (!signal.aborted) seen = await options.observe();
  }
}

/** Each look of this command observes the workers, so a bake time waits for an agent only where the look says so. */
function withWaitOfCommand(
  { waitsFor: _, ...judged }: JudgedRelease,
  waitsFor: BakeWait | undefined,
): JudgedRelease {
  return judged.state === 'baking' ? { ...judged, ...given({ waitsFor }) } : judged;
}

/** Also sooner, when a bake time ends; not where it waits for something else. */
function nextObservationDelayMs(judged: readonly JudgedRelease[], by: BakeObservation['by']): number {
  const left = judged.flatMap(({ leftMs, waitsFor }) =>
    leftMs === undefined || waitsFor !== undefined ? [] : [leftMs],
  );
  return Math.max(minDelayMs, Math.min(observeIntervalMs[by], ...left));
}

function longestBakeMs({ bundles }: StatusReport): number {
  return Math.max(0, ...bundles.map(({ bake }) => bake?.forMs ?? bake?.leftMs ?? 0));
}

type SettleEnd = 'settled' | 'rolled-back' | 'blocked' | 'baking' | 'interrupted';

function endOf(
  judged: readonly JudgedRelease[],
  { isOver, isStuck }: { readonly isOver: boolean; readonly isStuck: boolean },
): SettleEnd | undefined {
  const some = (state: JudgedRelease['state']): boolean => judged.some((one) => one.state === state);
  if (some('taken-back')) return 'rolled-back';
  if (some('failed')) return isStuck || isOver ? 'blocked' : undefined;
  if (some('baking')) return isOver ? 'baking' : undefined;
  return 'settled';
}

const headlines: Readonly<Record<SettleEnd, string>> = {
  settled: 'SETTLED',
  'rolled-back': 'ROLLED BACK',
  blocked: 'BLOCKED  nothing could be restored:',
  baking: 'BAKING',
  interrupted: 'INTERRUPTED, bake times go on:',
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
    report,
  }: { readonly end: SettleEnd; readonly judged: readonly JudgedRelease[]; readonly report: StatusReport },
): Answer {
  // A worker that was not notified at the pull may have been since.
  const missed =
    end === 'settled' && answer.exitCode !== 0 && !report.confirmed ? answer.exitCode : undefined;
  const code = codeOf(end, judged);
  const { hint: _, code: __, ...details } = answer.details;
  const texts = judged.length === 0 ? ['nothing is active'] : judged.map(releaseText);
  const kept = missed === undefined ? details : answer.details;
  return {
    ...answer,
    outcome: end,
    exitCode: missed ?? exitCodes[end],
    details: { ...kept, ...given({ code }), releases: judged, pull: pullOf(answer) },
    lines: [`${headlines[end]}  ${texts.join('; ')}`, ...answer.lines.map((line) => `  ${line}`)],
    next: end === 'settled' ? answer.next : 'writ status',
  };
}

/** A release that a person or its publisher took back has not failed. */
function codeOf(end: SettleEnd, judged: readonly JudgedRelease[]): string | undefined {
  if (end === 'blocked') return 'BAKE_FAILED';
  if (end !== 'rolled-back') return undefined;
  const causes = judged.flatMap(({ state, cause }) => (state === 'taken-back' ? (cause ?? []) : []));
  return causes.every((one) => isDeliberate(one)) ? causes[0] : 'BAKE_FAILED';
}

function isDeliberate(cause: string | undefined): boolean {
  return cause === 'RELEASE_HELD' || cause === 'RELEASE_WITHDRAWN';
}

function pullOf({ outcome, exitCode }: Answer): object {
  return { outcome, exitCode };
}

function releaseText({ bundle, serial, state, leftMs = 0, waitsFor, cause, text }: JudgedRelease): string {
  const name = `${bundle} ${serial}`;
  const why = cause === undefined ? '' : ` [${cause}] ${text?.split('\n', 1)[0] ?? ''}`;
  switch (state) {
    case 'baking':
      return `${name} bakes, ${waitsFor === undefined ? `${roughly(leftMs)} left` : `and waits for ${bakeWaitText(waitsFor)}`}`;
    case 'settled':
      return `${name} settled`;
    case 'unobserved':
      return `${name} settled, but no agent observed its bake time`;
    case 'none':
      return `${name} has no bake time`;
    case 'taken-back':
      if (cause === undefined) return `${name} is not active any more`;
      return isDeliberate(cause) ? `${name} ${text}` : `${name} was taken back${why}`;
    case 'failed':
      return `${name} failed${why}`;
  }
}
