// Repeats probes in one move and decides which of their results counts. Each question is repeated until a right answer or its
// deadline. The questions alternate, so that a silent one does not delay the others. The caller runs the commands.
import type { ProbeConfig } from '../../core/config/config.js';
import { defaultProbeDeadlineMs, defaultProbeGapMs } from '../../core/limits.js';
import type { Clock } from '../../platform/time/clock.js';
import type { HookReport } from './hook.js';

/** The results of one question so far. */
export interface ProbeAttempts {
  /** Wrong answers. */
  readonly wrong: number;
  /** Attempts that could not start the command. */
  readonly notRun: number;
  /** Attempts without an answer since the last answer. */
  readonly silent: number;
  /** The last attempt. One that the deadline shortened counts only if it was the first. */
  readonly last: HookReport;
  readonly lastWrong?: HookReport;
}

/** So many silent attempts replace an earlier wrong answer: a single slow attempt does not. */
const silencesOverWrong = 3;

/** @param isCut true for an attempt that the deadline shortened. @returns the results with this attempt */
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

/** @returns true if a further attempt cannot change the verdict, or `retry` does not allow one */
export function isDecided(
  { last, wrong, notRun }: ProbeAttempts,
  { retry }: Pick<ProbeConfig, 'retry'>,
): boolean {
  const { kind } = last.verdict;
  if (kind === 'ok' || kind === 'warned') return true;
  if (kind === 'refused') return retry !== undefined && wrong > retry;
  return last.isNotRun === true && notRun > (retry ?? 0);
}

/** @returns the final verdict of a question: the last wrong answer, unless several silent attempts followed it */
export function finalReport({ last, lastWrong, silent }: ProbeAttempts): HookReport {
  const { kind } = last.verdict;
  if (lastWrong === undefined || kind === 'ok' || kind === 'warned') return last;
  return silent < silencesOverWrong ? lastWrong : last;
}

export interface ProbeQuestion {
  readonly probe: ProbeConfig;
  /** Runs one attempt. */
  readonly ask: (timeoutMs: number) => Promise<HookReport>;
  /** Called between attempts: true if the probed workers have ended. */
  readonly isGone?: () => Promise<boolean>;
  /** Called once with the verdict; an error that it throws ends all questions. */
  readonly onDecided: (report: HookReport) => void;
}

interface OpenQuestion extends ProbeQuestion {
  attempts?: ProbeAttempts;
  /** Monotonic; undefined before the first attempt. */
  endMs?: number;
  nextMs: number;
}

export interface ProbeRunOptions {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  readonly signal?: AbortSignal | undefined;
}

/** Repeats all questions until each has a verdict. A stop request ends the open ones as interrupted. */
export async function runProbeQuestions(
  questions: readonly ProbeQuestion[],
  { clock, signal }: ProbeRunOptions,
): Promise<void> {
  let open: OpenQuestion[] = questions.map((one) => ({ ...one, nextMs: clock.monotonicMs() }));
  while (open.length > 0) {
    const next = open.reduce((one, other) => (other.nextMs < one.nextMs ? other : one));
    const waitMs = next.nextMs - clock.monotonicMs();
    if (waitMs > 0) await clock.sleep(waitMs, signal);
    const report =
      signal?.aborted && next.attempts !== undefined ? interrupted : await runAttempt(next, clock);
    if (report === undefined) continue;
    open = open.filter((one) => one !== next);
    next.onDecided(report);
  }
}

/** @returns the verdict; undefined if the question is repeated */
async function runAttempt(
  question: OpenQuestion,
  clock: ProbeRunOptions['clock'],
): Promise<HookReport | undefined> {
  const { probe, attempts } = question;
  if (attempts !== undefined && (await question.isGone?.())) return gone;
  const beganMs = clock.monotonicMs();
  question.endMs ??= beganMs + (probe.deadlineMs ?? defaultProbeDeadlineMs);
  const leftMs = question.endMs - beganMs;
  // The attempts of other questions may have used up the time: the last attempt then gets its full timeout.
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
