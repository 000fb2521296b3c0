// Runs one command of the user (check, canary, loader, probe) and judges its end. The command gets its placeholders, a cleared
// environment and a private empty directory, in the sandbox if there is one. The caller chooses the bundle, the generation and the
// paths to show, and decides about further attempts.

import { join } from 'node:path';
import type { HookConfig } from '../../core/config/config.js';
import { nearestName } from '../../core/config/config-errors.js';
import { type HookVerdictKind, judgeHook } from '../../core/cycle/hook-verdict.js';
import { hostFaultIn } from '../../core/cycle/host-fault.js';
import { type ErrorCode, isWritError, type WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { maxHookOutputBytes } from '../../core/limits.js';
import { type BoundedPattern, boundedPattern } from '../../platform/bounded-pattern.js';
import { guardDisk } from '../../platform/disk/disk-guard.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { BoxResult } from '../../platform/process/bubblewrap.js';
import { type CommandResult, runCommand } from '../../platform/process/run-command.js';
import type { Clock } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import type { Daemon } from '../../workers/contract/driver.js';
import { firstLineOf, type ProgramOutput, withoutLoaderLines } from '../../workers/shared/first-line.js';
import { deferralRule } from '../../workers/shared/not-now.js';
import { findDaemon } from '../../workers/shared/pid-file.js';
import { unreachedRule } from '../../workers/shared/unreachable.js';
import { type Confinement, confine } from './confine.js';
import type { HookOptions, HookPlaces, HookReport } from './hook.js';

/** Returns a report for every end of the command. @throws WritError DISK_* if its private directory cannot be created */
export async function runHook(options: HookOptions): Promise<HookReport> {
  const { hook, scratchRoot, durable } = options;
  const confined = await openConfinement(options);
  if (isWritError(confined)) return notRunReport(confined.message, confined.code);
  const home = durable.makeScratch('hook.home', join(scratchRoot, 'hook-'));
  try {
    const places = (confined && options.confine?.places) ?? options.places;
    const values = placeholderValues(places, home, options);
    // Change the owner of the scratch directory only. Its parent stays with the agent, so that other processes of that user cannot
    // enter it.
    if (confined?.user !== undefined) durable.changeOwner('hook.owner', values.scratch, confined.user);
    const argv = expand(hook.run, values);
    if (typeof argv === 'string') return notRunReport(argv);
    const env = { ...environmentOf(places, values.scratch), ...options.env };
    // Check the worker before the command runs, because a worker that crashes by the command has answered it.
    const daemon = hook.pidFile === undefined ? undefined : findDaemon(hook.pidFile);
    const result = await runWithLimits(options, confined, { argv, env, scratch: values.scratch });
    if (result.kind === 'not-boxed') {
      options.confine?.sandbox.forget();
      return notRunReport(`the sandbox could not be set up: ${result.reason}`, 'SANDBOX_BROKEN');
    }
    const report = applyHookRules(hook, result, daemon);
    return confined === undefined ? report : addSandboxHint(report, argv, { hook, confined });
  } finally {
    removeScratch('hook.remove', durable, home);
  }
}

/** @returns undefined for a command without a sandbox; an error for a command that must not run */
async function openConfinement({
  hook,
  confine: wanted,
}: HookOptions): Promise<Confinement | WritError | undefined> {
  if (wanted === undefined || hook.sandbox === 'off') return undefined;
  try {
    const capabilities = await wanted.sandbox.open();
    return capabilities === undefined ? undefined : confine(capabilities, { ...wanted, hook });
  } catch (error) {
    if (isWritError(error)) return error;
    throw error;
  }
}

async function runWithLimits(
  { hook, signal, readFree }: HookOptions,
  confined: Confinement | undefined,
  { scratch, ...line }: { argv: [string, ...string[]]; env: Record<string, string>; scratch: string },
): Promise<BoxResult> {
  const guard = confined && guardDisk({ path: scratch, ...(readFree === undefined ? {} : { readFree }) });
  using ending = joinSignals(signal, guard?.signal);
  const limits = { timeoutMs: hook.timeoutMs, maxOutputBytes: maxHookOutputBytes, signal: ending.signal };
  try {
    if (confined === undefined) return await runCommand({ ...limits, ...line, cwd: scratch });
    // The command can write only to its scratch directory, so temporary files belong there.
    const env = { TMPDIR: scratch, ...line.env };
    const result = await confined.run(scratch, { ...limits, ...line, env });
    // Ignore the verdict: the command may have refused because the disk was full.
    return guard?.signal.aborted ? { kind: 'not-started', reason: diskUseReason } : result;
  } finally {
    guard?.stop();
  }
}

const diskUseReason = 'it used half of the free disk space while it ran';

function placeholderValues(
  { candidate, current, bundle }: HookPlaces,
  home: string,
  { durable, scratch: shared }: HookOptions,
): Placeholders {
  const privateDirectory = (name: string): string => {
    const path = join(home, name);
    durable.makeDirectory('hook.scratch', path, 0o700);
    return path;
  };
  const scratch = shared ?? privateDirectory('scratch');
  return { candidate, bundle, scratch, current: current ?? privateDirectory('nothing-active') };
}

type Placeholders = Pick<HookPlaces, 'candidate' | 'bundle'> & {
  readonly current: string;
  readonly scratch: string;
};

/**
 * Expands placeholders in one pass, so that a path with braces in it is not expanded again.
 * @returns the arguments; a text with the reason for a placeholder without a value, or a misspelled one, with which the command
 *   would judge a wrong path
 */
function expand(run: HookConfig['run'], values: Placeholders): [string, ...string[]] | string {
  let missing: string | undefined;
  const expandOne = (text: string): string =>
    text.replace(/\{(candidate|current|bundle|scratch)\}/g, (whole, name: keyof Placeholders) => {
      const value = values[name];
      if (value === undefined) missing = whole;
      return value ?? whole;
    });
  const wrong = run.flatMap((text) => findMisspelled(text))[0];
  if (wrong !== undefined) return wrong;
  const [program, ...args] = run;
  const argv: [string, ...string[]] = [expandOne(program), ...args.map(expandOne)];
  return missing === undefined ? argv : `${missing} has no value here`;
}

const placeholders = ['candidate', 'current', 'bundle', 'scratch'];

/** Programs use braces too, as `{print}`. Only a name close to that of a placeholder is a mistake. */
function findMisspelled(text: string): string[] {
  return [...text.matchAll(/(?<!\$)\{([a-z]+)\}/g)].flatMap(([whole, name = '']) => {
    const meant = placeholders.includes(name) ? undefined : nearestName(name, placeholders);
    return meant === undefined ? [] : `unknown placeholder ${whole}; did you mean {${meant}}?`;
  });
}

function environmentOf({ generation, bundle }: HookPlaces, scratch: string): Record<string, string> {
  return {
    LANG: 'C.UTF-8',
    WRIT_SCRATCH_DIR: scratch,
    ...(generation === undefined ? {} : { WRIT_GENERATION_DIR: generation }),
    ...(bundle === undefined ? {} : { WRIT_BUNDLE_DIR: bundle }),
  };
}

/** Reports a command that did not run: a failure of this host, and no verdict on the policy. */
function notRunReport(reason: string, code?: ErrorCode): HookReport {
  return { verdict: { kind: 'broken', reason }, text: reason, durationMs: 0, code, isNotRun: true };
}

function reportOf(result: CommandResult): HookReport {
  const verdict = judgeHook(result);
  if (result.kind === 'not-started') return { verdict, text: result.reason, durationMs: 0, isNotRun: true };
  const text = textOf(result);
  const report = { verdict, text: text === '' ? verdict.reason : text, durationMs: result.durationMs };
  return isMissing(result) ? { ...report, isNotRun: true } : report;
}

/** True for the exit codes of a shell and of the sandbox for a program that is missing or not executable. */
function isMissing(result: CommandResult): boolean {
  return result.kind === 'exited' && (result.exitCode === 126 || result.exitCode === 127);
}

function textOf({ stdout, stderr, truncated }: ProgramOutput & { readonly truncated: boolean }): string {
  const output = `${stdout}\n${stderr}`.replace(notPrintable, '').trim();
  const isCut = truncated || output.length > maxHookOutputBytes;
  return isCut ? `${output.slice(0, maxHookOutputBytes)}\n[more output omitted]` : output;
}

/** Control and format characters are removed, because terminals obey escape sequences and changes of the reading direction. */
const notPrintable = /(?![\n\t])[\p{Cc}\p{Cf}]/gu;

/** The match blocks the agent. A pattern that takes longer on 64 kB of output is a mistake. */
const patternTimeoutMs = 500;

/**
 * Applies the rules of the command's configuration to its end, in this order: `reject` makes any end a refusal; an answer without
 * a reached worker is `unreachable`; "not now" is `deferred`.
 */
function applyHookRules(hook: HookConfig, result: CommandResult, daemon: Daemon | undefined): HookReport {
  const report = reportOf(result);
  const { kind, reason } = report.verdict;
  const dead = daemon?.kind === 'dead' ? daemon.reason : undefined;
  const isUnreached = kind === 'refused' && (dead !== undefined || isWorkerUnreached(hook, result));
  const isDeferred = !isUnreached && isNotNow(hook, result, kind);
  if (kind === 'ok' || kind === 'warned' || isUnreached || isDeferred) {
    const rejected = rejectedBy(hook, result);
    if (rejected !== undefined) return { ...report, verdict: rejected };
  }
  if (isDeferred) return { ...report, verdict: { kind: 'deferred', reason } };
  if (!isUnreached) return kind === 'refused' ? { ...report, ...faultOf(result) } : report;
  // The reason names the pid file, because a mistyped one would excuse every refusal.
  const unreached = dead === undefined ? 'it reached no worker' : `it reached no worker (${dead})`;
  return { ...report, verdict: { kind: 'unreachable', reason: `${unreached}: ${reason}` } };
}

function faultOf(result: CommandResult): Pick<HookReport, 'hostFault'> {
  return result.kind === 'not-started' ? {} : given({ hostFault: hostFaultIn(firstLineOf(result)) });
}

const hookPattern = (source: string): BoundedPattern =>
  boundedPattern(source, { timeoutMs: patternTimeoutMs });

function isWorkerUnreached({ unreachable }: HookConfig, result: CommandResult): boolean {
  const rule = unreachedRule(unreachable, hookPattern);
  return result.kind === 'exited' && rule(result.exitCode, result);
}

/** @returns true for "not now". An exit code that means success or a warning counts only if `notNow.exit` is configured */
function isNotNow({ notNow }: HookConfig, result: CommandResult, kind: HookVerdictKind): boolean {
  if (result.kind !== 'exited' || kind === 'ok') return false;
  if (kind === 'warned' && notNow?.exit === undefined) return false;
  return deferralRule(notNow, hookPattern).forExit(result.exitCode, result);
}

/** Matches `reject` on the output, for programs that report a refusal only in their text. It can refuse and never accept. */
function rejectedBy({ reject }: HookConfig, result: CommandResult): HookReport['verdict'] | undefined {
  if (reject === undefined || result.kind === 'not-started') return undefined;
  // Remove the warnings of the dynamic loader, which writes to the same stream.
  const text = textOf({ ...result, stderr: withoutLoaderLines(result.stderr) });
  const found = hookPattern(reject).find(text);
  if (found === undefined) return undefined;
  return found === 'no-verdict'
    ? { kind: 'broken', reason: '`reject` took too long on its output' }
    : { kind: 'refused', reason: `it wrote "${found.line}"` };
}

/** The part of the output that is searched for hidden paths. The arguments are searched completely. */
const maxHintCharacters = 4000;

/** Hints at a hidden path in the output or the arguments, because the command reports it as "No such file". */
function addSandboxHint(
  report: HookReport,
  argv: readonly string[],
  { hook, confined }: { readonly hook: HookConfig; readonly confined: Confinement },
): HookReport {
  if (report.verdict.kind === 'ok') return report;
  const sandboxed = hook.box?.network === 'yes' ? 'with-network' : 'without-network';
  const hidden = confined.hiddenIn([...argv, report.text.slice(0, maxHintCharacters)].join('\n'));
  if (hidden === undefined) return { ...report, sandboxed };
  const hint = `The sandbox hides ${hidden}: add it to \`binds\` of this command.`;
  return { ...report, sandboxed, hint };
}

/** Removes a directory of a command. Ignores errors, which do not change the verdict: the next start removes the rest. */
export function removeScratch(
  label: 'hook.remove' | 'canary.remove',
  durable: DurableFs,
  directory: string,
): void {
  try {
    durable.removeTree(label, directory);
  } catch (error) {
    if (!isWritError(error)) throw error;
  }
}

export interface RetryOptions {
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** The delay between two attempts, in milliseconds. */
const retryMs = 500;

/** Ends without a verdict, which a further attempt may change. All other ends are answers. */
const withoutVerdict: readonly HookVerdictKind[] = ['broken', 'unreachable'];

/**
 * Runs a command, and repeats it up to `retry` times after an end without a verdict.
 * @param ask runs it once
 * @returns the report of the last attempt
 */
export async function retryHook(
  hook: HookConfig,
  { clock, signal }: RetryOptions,
  ask: (hook: HookConfig) => Promise<HookReport>,
): Promise<HookReport> {
  let report = await ask(hook);
  for (let tries = 0; tries < (hook.retry ?? 0) && withoutVerdict.includes(report.verdict.kind); tries++) {
    await clock.sleep(retryMs, signal);
    if (signal?.aborted) break;
    report = await ask(hook);
  }
  return report;
}
