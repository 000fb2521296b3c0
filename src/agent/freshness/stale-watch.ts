// Begins and ends a stale period: the policy is older than `maxStale`, or a release is missed for longer than `release.maxStale`.
// Records it in log and history, and runs the commands of the operator. A failed command is retried at growing intervals until it exits
// with 0. A successful one is run once for each period and boot, because its effect may end with the boot. The ledger keeps the period:
// neither a restart nor a clock that is set back ends it, only a completely verified refresh.
import { computeBackoffMs } from '../../core/backoff.js';
import type { HookConfig } from '../../core/config/config.js';
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { toWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { createStalePolicyError, type FreshnessReport } from '../../core/status/freshness.js';
import { createMissedReleaseError, type MissedStatus } from '../../core/status/missed-release.js';
import { utcTimeText } from '../../core/text/iso-time.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { runHook } from '../hooks/run-hook.js';
import { newCycleId } from '../job/progress.js';
import { recordEvent } from '../job/record.js';
import { openStagingArea } from '../job/staging-area.js';
import type { Host } from '../state/host.js';
import { ledgerSection, type StalePeriod } from '../state/ledger.js';
import { type ContactKeeper, freshnessOf } from './contact-memory.js';
import { missedNow } from './missed-releases.js';

const changeStale = ledgerSection('stale');

export interface StaleWatch {
  /**
   * Acts on the present freshness; called after each refresh, and at intervals between them. Never rejects: the result of a command is
   * in log and history, and changes no outcome.
   * @returns whether the ledger changed, which changes the status
   */
  check(host: Host, contact: ContactKeeper, signal: AbortSignal): Promise<'changed' | 'same'>;
}

/**
 * Creates the watch, without a failed command. Reads and runs nothing before `check`. Throws nothing.
 * @param bootId the kernel's id of this boot. A command that succeeded is run again for the same period only with another id
 * @returns the watch. Its `check` does nothing and resolves to `same` before contact is conclusive, and without a limit and a
 *   period. A failed command is retried after 30 s, then at growing intervals of at most an hour
 */
export function createStaleWatch(bootId: string): StaleWatch {
  const retries = { failed: 0, notBeforeMs: 0 };
  return {
    check: async (host, contact, signal) => {
      const before = host.ledger.read().stale;
      const { maxStaleMs, release } = host.config.freshness;
      const isConfigured = maxStaleMs !== undefined || release.maxStaleMs !== undefined;
      if (!contact.isConclusive() || (!isConfigured && before === undefined)) return 'same';
      try {
        const freshness = freshnessOf(host, contact.read());
        const overdue = overdueIn(host, freshness, before);
        const context = { host, freshness, overdue, signal, bootId, retries };
        if (before !== undefined && (overdue === undefined || before.phase === 'over'))
          await endPeriod(before, context);
        else if (overdue !== undefined) await keepPeriod(before, { ...context, overdue });
      } catch (error) {
        host.log.error({ err: error }, 'the command for the age of the policy could not run');
      }
      return host.ledger.read().stale === before ? 'same' : 'changed';
    },
  };
}

interface Context {
  readonly host: Host;
  readonly freshness: FreshnessReport;
  /** Undefined where the period is over. */
  readonly overdue: Overdue | undefined;
  readonly signal: AbortSignal;
  readonly bootId: string;
  /** How often the command that is pending has failed, and when it is tried again by the monotonic clock. */
  readonly retries: { failed: number; notBeforeMs: number };
}

/** The metadata that is too old, or else the release that is missed for the longest time. */
type Overdue =
  | { readonly of: 'metadata'; readonly sinceMs: number }
  | {
      readonly of: 'release';
      readonly sinceMs: number;
      readonly bundle: string;
      readonly missed: MissedStatus;
    };

function overdueIn(
  host: Host,
  freshness: FreshnessReport,
  period: StalePeriod | undefined,
): Overdue | undefined {
  const { maxStaleMs = 0 } = host.config.freshness.release;
  const { overdueSinceMs } = freshness;
  if (overdueSinceMs !== undefined && !(period !== undefined && isProvenAgain(freshness, period, host)))
    return { of: 'metadata', sinceMs: overdueSinceMs };
  const releases = [...missedNow(host)].filter(([, { state }]) => state === 'overdue');
  const [first] = releases.sort(([, a], [, b]) => a.sinceMs - b.sinceMs);
  if (first === undefined) return undefined;
  const [bundle, missed] = first;
  return { of: 'release', sinceMs: missed.sinceMs + maxStaleMs, bundle, missed };
}

/** True after a verified refresh, or if the operator removed the limit. */
function isProvenAgain(
  { failing, verifiedAtMs, ageMs }: FreshnessReport,
  period: StalePeriod,
  { config }: Host,
): boolean {
  const { maxStaleMs } = config.freshness;
  if (maxStaleMs === undefined || period.of === 'release') return maxStaleMs === undefined;
  // The age alone is not sufficient, because a clock that is set back makes it small.
  return failing === undefined && verifiedAtMs !== undefined && ageMs !== undefined && ageMs <= maxStaleMs;
}

async function keepPeriod(
  known: StalePeriod | undefined,
  context: Context & { readonly overdue: Overdue },
): Promise<void> {
  const { host, freshness, overdue, bootId } = context;
  const period = notePeriodOf(host, overdue, known, freshness);
  const { onStale: hook, maxStaleMs } = host.config.freshness;
  const stale = problemOf(
    overdue.of === 'metadata'
      ? createStalePolicyError(freshness, maxStaleMs)
      : createMissedReleaseError(overdue.bundle, overdue.missed),
  );
  if (hook === undefined) {
    if (known === undefined) recordStale(host, 'no onStale command', [stale]);
    return;
  }
  if (period.ranBootId === bootId) return;
  const run = await runPending(context, 'onStale', hook);
  if (run === undefined) return;
  const { text, problem } = run;
  if (problem === undefined) notePeriod(host, { ...period, ranBootId: bootId });
  if (known === undefined || isFirstOfKind(run, context))
    recordStale(host, text, problem === undefined ? [stale] : [stale, problem]);
}

/** Written before the command is run, so that a crash of the agent keeps the period. A period may change from the release to the metadata. */
function notePeriodOf(
  host: Host,
  overdue: Overdue,
  known: StalePeriod | undefined,
  { failing }: FreshnessReport,
): StalePeriod {
  const of = overdue.of === 'release' ? overdue.of : undefined;
  if (known !== undefined && known.of === of) return known;
  const code = overdue.of === 'release' ? overdue.missed.code : failing?.code;
  const ran = given({ ranBootId: known?.ranBootId });
  const period: StalePeriod = { phase: 'stale', sinceMs: overdue.sinceMs, ...ran, ...given({ code, of }) };
  notePeriod(host, period);
  return period;
}

async function endPeriod(period: StalePeriod, context: Context): Promise<void> {
  const { host, retries } = context;
  // The failures so far are those of the other command.
  if (period.phase === 'stale') Object.assign(retries, { failed: 0, notBeforeMs: 0 });
  const { onFresh: hook } = host.config.freshness;
  const what =
    period.of === 'release' ? 'without a release for longer than release.maxStale' : 'older than maxStale';
  const ended = `fresh again; ${what} since ${utcTimeText(period.sinceMs)}`;
  if (hook === undefined || period.ranBootId === undefined) {
    notePeriod(host, undefined);
    return recordStale(host, ended, []);
  }
  if (period.phase === 'stale') notePeriod(host, { ...period, phase: 'over' });
  const run = await runPending(context, 'onFresh', hook);
  if (run === undefined) return;
  const { text, problem } = run;
  if (problem === undefined) notePeriod(host, undefined);
  if (isFirstOfKind(run, context))
    recordStale(host, `${ended}; ${text}`, problem === undefined ? [] : [problem]);
}

/** True for a success and the first failure. Later failures are only in the log. */
function isFirstOfKind({ problem }: Run, { retries }: Context): boolean {
  return problem === undefined || retries.failed === 1;
}

function recordStale(host: Host, reason: string, problems: readonly Problem[]): void {
  recordEvent(host, { trigger: 'stale', problems, reason });
}

function notePeriod(host: Host, stale: StalePeriod | undefined): void {
  host.ledger.write(changeStale(host.ledger.read(), { stale }));
}

interface Run {
  /** The end of the command in one line, and its output. */
  readonly text: string;
  readonly problem?: Problem;
}

const backoff = { firstMs: 30_000, maxMs: 3_600_000 };
const maxShownCharacters = 2000;

/** @returns undefined while a failed command waits for its next attempt, or when the agent ends */
async function runPending(
  { host, freshness, overdue, signal, retries }: Context,
  name: 'onStale' | 'onFresh',
  hook: HookConfig,
): Promise<Run | undefined> {
  if (signal.aborted || host.clock.monotonicMs() < retries.notBeforeMs) return undefined;
  const area = openStagingArea(host.paths, host.durable, newCycleId());
  try {
    const { verdict, text } = await runHook({
      hook,
      places: placesOf(host),
      scratchRoot: area.path(),
      durable: host.durable,
      env: overdue?.of === 'release' ? releaseEnvironment(host, overdue) : environmentOf(host, freshness),
      signal,
    });
    if (signal.aborted) return undefined;
    const shown = `${name}: ${verdict.reason}${text === verdict.reason ? '' : `\n${text.slice(0, maxShownCharacters)}`}`;
    if (verdict.kind === 'ok') {
      Object.assign(retries, { failed: 0, notBeforeMs: 0 });
      host.log.warn({ command: name, output: shown }, 'the command for the age of policy was run');
      return { text: shown };
    }
    throw new WritError('STALE_COMMAND_FAILED', shown, { facts: { command: name } });
  } catch (error) {
    return failedRun({ host, retries }, toWritError(error));
  } finally {
    area.remove(host.log);
  }
}

function failedRun({ host, retries }: Pick<Context, 'host' | 'retries'>, error: WritError): Run {
  retries.failed += 1;
  const delayMs = computeBackoffMs(retries.failed, backoff);
  retries.notBeforeMs = host.clock.monotonicMs() + delayMs;
  host.log.error({ err: error, tries: retries.failed, delayMs }, 'the command for the age of policy failed');
  return { text: error.message, problem: problemOf(error) };
}

function placesOf({ paths }: Host): { generation?: string; current?: string } {
  const generation = activeGenerationNumber(paths);
  if (generation === undefined) return {};
  const current = `${paths.generations}/${generation}`;
  return { generation: current, current };
}

function releaseEnvironment(
  { config, clock }: Host,
  { bundle, missed }: Extract<Overdue, { of: 'release' }>,
): Record<string, string> {
  const { sinceMs, code } = missed;
  return {
    WRIT_STALE_STATE: 'release',
    WRIT_STALE_BUNDLE: bundle,
    WRIT_STALE_AGE_SECONDS: secondsText(Math.max(0, clock.nowMs() - sinceMs)),
    WRIT_MAX_STALE_SECONDS: secondsText(config.freshness.release.maxStaleMs ?? 0),
    ...given({ WRIT_STALE_CODE: code }),
  };
}

function secondsText(ms: number): string {
  return String(Math.floor(ms / 1000));
}

function environmentOf({ config }: Host, freshness: FreshnessReport): Record<string, string> {
  const { state, ageMs = 0, failing, refused, expired } = freshness;
  const code = refused?.code ?? failing?.code;
  const role = refused?.role ?? expired?.role ?? failing?.role;
  return {
    WRIT_STALE_STATE: state,
    WRIT_STALE_AGE_SECONDS: secondsText(ageMs),
    WRIT_MAX_STALE_SECONDS: secondsText(config.freshness.maxStaleMs ?? 0),
    ...(code === undefined ? {} : { WRIT_STALE_CODE: code }),
    ...(role === undefined ? {} : { WRIT_STALE_ROLE: role }),
  };
}
