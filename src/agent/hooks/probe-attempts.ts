// How often a probe is asked in one move, and which of its answers counts. Each question is asked until a right answer, at
// most until its deadline; questions take turns, so that a silent one does not delay the others. Runs no command itself.
import type { ProbeConfig } from '../../core/config/config.js';
import { defaultProbeDeadlineMs, defaultProbeGapMs } from '../../core/limits.js';
import type { Clock } from '../../platform/time/clock.js';
import type { HookReport } from './hook.js';

/** What one question has found so far. */
export interface ProbeAttempts {
  /** Wrong answers. */
  readonly wrong: number;
  /** Attempts that could not start the command. */
  readonly notRun: number;
  /** Attempts without an answer since the last answer. */
  readonly silent: number;
  /** The last attempt; one that the deadline cut short only where it was the first. */
  readonly last: HookReport;
  readonly lastWrong?: HookReport;
}

/** One slow attempt says nothing about a daemon that answered before it. */
const silencesOverWrong = 3;

/** @param isCut true for an attempt that the deadline ended */
export function afterAttempt(
  known: ProbeAttempts | undefined,
  report: HookReport,
  isCut: boolean,
): ProbeAttempts {
  if (known !== undefined && isCut) return known;
  const { wrong = 0, notRun = 0, silent = 0 } = known ?? {};
  if (report.verdict.kind === 'refused')
    return { wrong: wrong + 1, notRun, silent: 0, last: report, lastWrong: report };
  const before = { ...known, wrong, last: report };
  return { ...before, notRun: notRun + (report.isNotRun ? 1 : 0), silent: silent + 1 };
}

/** @returns true where no further attempt could change the verdict, or `retry` allows none */
export function isDecided(
  { last, wrong, notRun }: ProbeAttempts,
  { retry }: Pick<ProbeConfig, 'retry'>,
): boolean {
  const { kind } = last.verdict;
  if (kind === 'ok' || kind === 'warned') return true;
  if (kind === 'refused') return retry !== undefined && wrong > retry;
  return last.isNotRun === true && notRun > (retry ?? 0);
}

/** @returns the verdict once a question is over: the last wrong answer, unless a longer silence followed it */
export function finalReport({ last, lastWrong, silent }: ProbeAttempts): HookReport {
  const { kind } = last.verdict;
  if (lastWrong === undefined || kind === 'ok' || kind === 'warned') return last;
  return silent < silencesOverWrong ? lastWrong : last;
}

export interface ProbeQuestion {
  readonly probe: ProbeConfig;
  /** One attempt. */
  readonly ask: (timeoutMs: number) => Promise<HookReport>;
  /** Asked between attempts: true once the workers that it is about are gone. */
  readonly isGone?: () => Promise<boolean>;
  /** Called once; what it throws ends all questions. */
  readonly onDecided: (report: HookReport) => void;
}

interface OpenQuestion extends ProbeQuestion {
  attempts?: ProbeAttempts;
  /** Monotonic; undefined before the first attempt. */
  endMs?: number;
  nextMs: number;
}

export interface ProbeTurns {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  readonly signal?: AbortSignal | undefined;
}

/** Asks all questions until each is decided. A stop request leaves those that are open without a verdict. */
export async function askInTurns(
  questions: readonly ProbeQuestion[],
  { clock, signal }: ProbeTurns,
): Promise<void> {
  let open: OpenQuestion[] = questions.map((one) => ({ ...one, nextMs: clock.monotonicMs() }));
  while (open.length > 0) {
    const next = open.reduce((one, other) => (other.nextMs < one.nextMs ? other : one));
    const waitMs = next.nextMs - clock.monotonicMs();
    if (waitMs > 0) await clock.sleep(waitMs, signal);
    const report = signal?.aborted && next.attempts !== undefined ? interrupted : await turn(next, clock);
    if (report === undefined) continue;
    open = open.filter((one) => one !== next);
    next.onDecided(report);
  }
}

/** @returns the verdict; undefined where the question is asked again */
async function turn(question: OpenQuestion, clock: ProbeTurns['clock']): Promise<HookReport | undefined> {
  const { probe, attempts } = question;
  if (attempts !== undefined && (await question.isGone?.())) return gone;
  const beganMs = clock.monotonicMs();
  question.endMs ??= beganMs + (probe.deadlineMs ?? defaultProbeDeadlineMs);
  const leftMs = question.endMs - beganMs;
  // Other questions may have taken the time: the last attempt is a full one.
  const timeoutMs = leftMs > 0 ? Math.min(probe.timeoutMs, leftMs) : probe.timeoutMs;
  const report = await question.ask(timeoutMs);
  const isCut = timeoutMs < probe.timeoutMs && clock.monotonicMs() >= question.endMs;
  question.attempts = afterAttempt(attempts, report, isCut && report.verdict.kind === 'broken');
  question.nextMs = clock.monotonicMs() + (probe.gapMs ?? defaultProbeGapMs);
  const isOver = question.nextMs >= question.endMs || isDecided(question.attempts, probe);
  return isOver ? finalReport(question.attempts) : undefined;
}

const interrupted = withoutAnswer('broken', 'interrupted');
const gone = withoutAnswer('unreachable', 'its workers are gone or stopped');

function withoutAnswer(kind: 'broken' | 'unreachable', reason: string): HookReport {
  return { verdict: { kind, reason }, text: reason, durationMs: 0 };
}
