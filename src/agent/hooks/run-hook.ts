// Runs one user's command (check, canary, loader, probe) with its placeholders, its cleared environment and a private
// empty directory, in the sandbox where there is one, and judges its end. Knows no bundle and no generation: its
// caller says which paths to show, what is at the live policy path, and of which ends it wants another try.

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
import { notNowRule } from '../../workers/shared/not-now.js';
import { findDaemon } from '../../workers/shared/pid-file.js';
import { unreachedRule } from '../../workers/shared/unreachable.js';
import { type Confinement, confine } from './confine.js';
import type { HookOptions, HookPlaces, HookReport } from './hook.js';

/** Never rejects for what the command does. @throws WritError DISK_* when its directory cannot be made */
export async function runHook(options: HookOptions): Promise<HookReport> {
  const { hook, scratchRoot, durable } = options;
  const confined = await openConfinement(options);
  if (isWritError(confined)) return notRun(confined.message, confined.code);
  const home = durable.makeScratch('hook.home', join(scratchRoot, 'hook-'));
  try {
    const places = (confined && options.confine?.places) ?? options.places;
    const values = placeholderValues(places, home, options);
    // Its home stays ours, and out of reach of anybody else who runs as that user.
    if (confined?.user !== undefined) durable.changeOwner('hook.owner', values.scratch, confined.user);
    const argv = expand(hook.run, values);
    if (typeof argv === 'string') return notRun(argv);
    const env = { ...environmentOf(places, values.scratch), ...options.env };
    // Looked at before: who dies of a command has answered it.
    const daemon = hook.pidFile === undefined ? undefined : findDaemon(hook.pidFile);
    const result = await runEither(options, confined, { argv, env, scratch: values.scratch });
    if (result.kind === 'not-boxed') {
      options.confine?.sandbox.forget();
      return notRun(`the sandbox could not be set up: ${result.reason}`, 'SANDBOX_BROKEN');
    }
    const report = judgeAgain(hook, result, daemon);
    return confined === undefined ? report : inSandbox(report, argv, { hook, confined });
  } finally {
    removeScratch('hook.remove', durable, home);
  }
}

/** @returns undefined for a command that runs as it is, or why it must not */
async function openConfinement({
  hook,
  confine: wanted,
}: HookOptions): Promise<Confinement | WritError | undefined> {
  if (wanted === undefined || hook.sandbox === 'off') return undefined;
  try {
    const means = await wanted.sandbox.open();
    return means === undefined ? undefined : confine(means, { ...wanted, hook });
  } catch (error) {
    if (isWritError(error)) return error;
    throw error;
  }
}

async function runEither(
  { hook, signal, readFree }: HookOptions,
  confined: Confinement | undefined,
  { scratch, ...line }: { argv: [string, ...string[]]; env: Record<string, string>; scratch: string },
): Promise<BoxResult> {
  const guard = confined && guardDisk({ path: scratch, ...(readFree === undefined ? {} : { readFree }) });
  using ending = joinSignals(signal, guard?.signal);
  const limits = { timeoutMs: hook.timeoutMs, maxOutputBytes: maxHookOutputBytes, signal: ending.signal };
  try {
    if (confined === undefined) return await runCommand({ ...limits, ...line, cwd: scratch });
    // The one place it can write: what would be in /tmp goes there.
    const env = { TMPDIR: scratch, ...line.env };
    const result = await confined.run(scratch, { ...limits, ...line, env });
    // A command that met a full disk may have refused because of it.
    return guard?.signal.aborted ? { kind: 'not-started', reason: diskReason } : result;
  } finally {
    guard?.stop();
  }
}

const diskReason = 'it used half of the free disk space while it ran';

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
 * One pass, so that a path with braces in it is not expanded again.
 * @returns why not: a placeholder without value, or a misspelt one, by which a command would judge nothing
 */
function expand(run: HookConfig['run'], values: Placeholders): [string, ...string[]] | string {
  let missing: string | undefined;
  const expandOne = (text: string): string =>
    text.replace(/\{(candidate|current|bundle|scratch)\}/g, (whole, name: keyof Placeholders) => {
      const value = values[name];
      if (value === undefined) missing = whole;
      return value ?? whole;
    });
  const wrong = run.flatMap((text) => misspelt(text))[0];
  if (wrong !== undefined) return wrong;
  const [program, ...args] = run;
  const argv: [string, ...string[]] = [expandOne(program), ...args.map(expandOne)];
  return missing === undefined ? argv : `${missing} has no value here`;
}

const placeholders = ['candidate', 'current', 'bundle', 'scratch'];

/** Words in braces are for programs too, as `{print}`: only what is nearly one of ours is a mistake. */
function misspelt(text: string): string[] {
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

/** Our failure, and no verdict on anybody's policy. */
function notRun(reason: string, code?: ErrorCode): HookReport {
  return { verdict: { kind: 'broken', reason }, text: reason, durationMs: 0, code, isNotRun: true };
}

function reportOf(result: CommandResult): HookReport {
  const verdict = judgeHook(result);
  if (result.kind === 'not-started') return { verdict, text: result.reason, durationMs: 0, isNotRun: true };
  const text = textOf(result);
  const report = { verdict, text: text === '' ? verdict.reason : text, durationMs: result.durationMs };
  return isMissing(result) ? { ...report, isNotRun: true } : report;
}

/** As a shell, and the sandbox, say that there is no such program, or none that may be run. */
function isMissing(result: CommandResult): boolean {
  return result.kind === 'exited' && (result.exitCode === 126 || result.exitCode === 127);
}

function textOf({ stdout, stderr, truncated }: ProgramOutput & { readonly truncated: boolean }): string {
  const output = `${stdout}\n${stderr}`.replace(notPrintable, '').trim();
  const isCut = truncated || output.length > maxHookOutputBytes;
  return isCut ? `${output.slice(0, maxHookOutputBytes)}\n[more output omitted]` : output;
}

/** Output is shown on terminals: escape sequences and characters that turn the reading direction stay out. */
const notPrintable = /(?![\n\t])[\p{Cc}\p{Cf}]/gu;

/** The rest of the agent waits meanwhile: a pattern that takes longer on 64 kB is a mistake. */
const patternTimeoutMs = 500;

/**
 * What the end of a command means by the user's own rules: `reject` makes any end a refusal, a no to nobody is none, and a
 * busy daemon has judged nothing. In this order.
 */
function judgeAgain(hook: HookConfig, result: CommandResult, daemon: Daemon | undefined): HookReport {
  const report = reportOf(result);
  const { kind, reason } = report.verdict;
  const dead = daemon?.kind === 'dead' ? daemon.reason : undefined;
  const isUnreached = kind === 'refused' && (dead !== undefined || reachedNobody(hook, result));
  const isDeferred = !isUnreached && isNotNow(hook, result, kind);
  if (kind === 'ok' || kind === 'warned' || isUnreached || isDeferred) {
    const rejected = rejectedBy(hook, result);
    if (rejected !== undefined) return { ...report, verdict: rejected };
  }
  if (isDeferred) return { ...report, verdict: { kind: 'deferred', reason } };
  if (!isUnreached) return kind === 'refused' ? { ...report, ...faultOf(result) } : report;
  // A pid file that is mistyped excuses every no: so it is named.
  const nobody = dead === undefined ? 'it reached no worker' : `it reached no worker (${dead})`;
  return { ...report, verdict: { kind: 'unreachable', reason: `${nobody}: ${reason}` } };
}

function faultOf(result: CommandResult): Pick<HookReport, 'hostFault'> {
  return result.kind === 'not-started' ? {} : given({ hostFault: hostFaultIn(firstLineOf(result)) });
}

const hookPattern = (source: string): BoundedPattern =>
  boundedPattern(source, { timeoutMs: patternTimeoutMs });

function reachedNobody({ unreachable }: HookConfig, result: CommandResult): boolean {
  const rule = unreachedRule(unreachable, hookPattern);
  return result.kind === 'exited' && rule(result.exitCode, result);
}

/** A code that is a yes by itself is "not now" only where the user names it. */
function isNotNow({ notNow }: HookConfig, result: CommandResult, kind: HookVerdictKind): boolean {
  if (result.kind !== 'exited' || kind === 'ok') return false;
  if (kind === 'warned' && notNow?.exit === undefined) return false;
  return notNowRule(notNow, hookPattern).forExit(result.exitCode, result);
}

/** For programs that say in words what their exit code does not: they can refuse so, and never accept. */
function rejectedBy({ reject }: HookConfig, result: CommandResult): HookReport['verdict'] | undefined {
  if (reject === undefined || result.kind === 'not-started') return undefined;
  // The dynamic loader of this host writes to the same stream.
  const text = textOf({ ...result, stderr: withoutLoaderLines(result.stderr) });
  const found = hookPattern(reject).find(text);
  if (found === undefined) return undefined;
  return found === 'no-verdict'
    ? { kind: 'broken', reason: '`reject` took too long on its output' }
    : { kind: 'refused', reason: `it wrote "${found.line}"` };
}

/** Of a command's output, searched for paths; a path in its arguments is found in any case. */
const maxHintCharacters = 4000;

/** What is hidden looks as if it were missing: who reads "No such file" looks in the wrong place. */
function inSandbox(
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

/** What a command made unreadable for us stays until the jail goes; that says nothing about its verdict. */
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

/** Between two tries: what was busy has a moment to become less so. */
const retryMs = 500;

/** A yes, a no and "not now" are answers; only an end without a verdict may be chance, and who is away may come. */
const withoutVerdict: readonly HookVerdictKind[] = ['broken', 'unreachable'];

/**
 * Further tries of a command, as its `retry` says.
 * @param ask runs it once
 * @returns the report of the last try, which is the answer
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
