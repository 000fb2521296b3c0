// Runs one user's command (check, loader, probe) with its placeholders, its cleared environment and a private
// empty directory, and judges its end. Knows no bundle and no generation: its caller says which paths to show.
import { join } from 'node:path';
import type { HookConfig } from '../core/config.js';
import { isWritError } from '../core/errors.js';
import { type HookVerdict, judgeHook } from '../core/hook-verdict.js';
import { maxHookOutputBytes } from '../core/limits.js';
import type { DurableFs } from '../platform/durable-fs.js';
import { type CommandResult, runCommand } from '../platform/run-command.js';

/** What a command is shown. */
export interface HookPlaces {
  /** The generation that it is about; its WRIT_GENERATION_DIR. Left out where none is active. */
  readonly generation?: string;
  /** For `{candidate}`. */
  readonly candidate?: string;
  /** For `{current}`; left out before the first activation: the command then gets an empty directory. */
  readonly current?: string;
  /** For `{bundle}` and WRIT_BUNDLE_DIR; left out where there is not one bundle alone. */
  readonly bundle?: string;
}

export interface HookOptions {
  readonly hook: HookConfig;
  readonly places: HookPlaces;
  /** An existing private directory; what the command gets in it is removed afterwards. */
  readonly scratchRoot: string;
  readonly durable: DurableFs;
  /** An existing directory in place of a private one, for commands that must meet; its maker removes it. */
  readonly scratch?: string;
  /** Beside the places. */
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface HookReport {
  readonly verdict: HookVerdict;
  /** Output of both streams, bounded, without control characters. */
  readonly text: string;
  readonly durationMs: number;
}

/** Never rejects for what the command does. @throws WritError DISK_* when its directory cannot be made */
export async function runHook(options: HookOptions): Promise<HookReport> {
  const { hook, scratchRoot, durable, signal } = options;
  const home = durable.makeScratch('hook.home', join(scratchRoot, 'hook-'));
  try {
    const values = placeholderValues(options, home);
    const argv = expand(hook.run, values);
    if (typeof argv === 'string') return unset(argv);
    const result = await runCommand({
      argv,
      env: { ...environmentOf(options.places, values.scratch), ...options.env },
      cwd: values.scratch,
      timeoutMs: hook.timeoutMs,
      maxOutputBytes: maxHookOutputBytes,
      ...(signal === undefined ? {} : { signal }),
    });
    return reportOf(result);
  } finally {
    removeHome(durable, home);
  }
}

interface PlaceholderValues {
  readonly candidate: string | undefined;
  readonly current: string;
  readonly bundle: string | undefined;
  readonly scratch: string;
}

function placeholderValues(
  { places, durable, scratch: shared }: HookOptions,
  home: string,
): PlaceholderValues {
  const { candidate, current, bundle } = places;
  const privateDirectory = (name: string): string => {
    const path = join(home, name);
    durable.makeDirectory('hook.scratch', path, 0o700);
    return path;
  };
  const scratch = shared ?? privateDirectory('scratch');
  return { candidate, bundle, scratch, current: current ?? privateDirectory('nothing-active') };
}

/** One pass, so that a path with braces in it is not expanded again. @returns the name of a placeholder without value */
function expand(run: HookConfig['run'], values: PlaceholderValues): [string, ...string[]] | string {
  let missing: string | undefined;
  const expandOne = (text: string): string =>
    text.replace(/\{(candidate|current|bundle|scratch)\}/g, (whole, name: keyof PlaceholderValues) => {
      const value = values[name];
      if (value === undefined) missing = whole;
      return value ?? whole;
    });
  const [program, ...args] = run;
  const argv: [string, ...string[]] = [expandOne(program), ...args.map(expandOne)];
  return missing ?? argv;
}

function environmentOf({ generation, bundle }: HookPlaces, scratch: string): Record<string, string> {
  return {
    LANG: 'C.UTF-8',
    WRIT_SCRATCH_DIR: scratch,
    ...(generation === undefined ? {} : { WRIT_GENERATION_DIR: generation }),
    ...(bundle === undefined ? {} : { WRIT_BUNDLE_DIR: bundle }),
  };
}

function unset(placeholder: string): HookReport {
  const reason = `${placeholder} stands for nothing here`;
  return { verdict: { kind: 'broken', reason }, text: reason, durationMs: 0 };
}

function reportOf(result: CommandResult): HookReport {
  const verdict = judgeHook(result);
  if (result.kind === 'not-started') return { verdict, text: result.reason, durationMs: 0 };
  const output = `${result.stdout}\n${result.stderr}`.replace(notPrintable, '').trim();
  const isCut = result.truncated || output.length > maxHookOutputBytes;
  const text = isCut ? `${output.slice(0, maxHookOutputBytes)}\n[more was written]` : output;
  return { verdict, text: text === '' ? verdict.reason : text, durationMs: result.durationMs };
}

/** Output is shown on terminals: escape sequences and characters that turn the reading direction stay out. */
const notPrintable = /(?![\n\t])[\p{Cc}\p{Cf}]/gu;

/** What a command made unreadable for us stays until the jail goes; that says nothing about its verdict. */
function removeHome(durable: DurableFs, home: string): void {
  try {
    durable.removeTree('hook.remove', home);
  } catch (error) {
    if (!isWritError(error)) throw error;
  }
}
