// The interface of a command: its flags and its answer. Types with few constructors. It imports nothing at run time, so that
// the table of commands loads fast. render.ts formats answers.
import type { ErrorCode } from '../../core/error-codes.js';
import type { HealthLevel } from '../../core/status/host-health.js';
import type { Amount, WorkReport } from '../../core/work-report.js';
import type { Clock } from '../../platform/time/clock.js';
import type { CommonFlags, FlagTable } from './flags.js';

export type StepState = 'ok' | 'warn' | 'FAIL' | 'skip';

/**
 * The progress of a command, on stderr. On a terminal the current step is one progress line, which its end replaces. Without
 * a terminal each finished step is one line with tabs. The answer is never printed here.
 */
export interface Reporter extends WorkReport {
  /** Begins a step; a second call for the same step changes its progress line. */
  begin(step: string, text?: string): void;
  /** Changes the progress line at most ten times a second; without a terminal it prints nothing. */
  progress(step: string, amount: Amount, text?: string): void;
  /** Ends a step and prints its duration since `begin`. The default state is `ok`. */
  finish(step: string, text: string, state?: StepState): void;
  /** Ends a step without output and removes its progress line. */
  drop(step: string): void;
  /** A line that belongs to the step before it. */
  note(text: string): void;
  /** Something a person should know that changes no outcome; shown with --quiet too. */
  warn(text: string): void;
}

/** The part of the process that a command uses; tests pass their own. */
export interface Surroundings {
  readonly stdin: NodeJS.ReadStream & { readonly fd: number };
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The time of the command; left out: the time of the system. */
  readonly clock?: Clock;
  /** The release of this version, epoch milliseconds; left out: taken from the build if `clock` is the system clock. */
  readonly releasedAtMs?: number;
  /** The base of relative paths; left out: the working directory, and paths stay as typed. */
  readonly directory?: string;
  /** Folders of unit files; left out: those of systemd. */
  readonly unitFolders?: readonly string[];
  /** Directory of the built documentation; left out: that of the package, if the program was installed from one. */
  readonly docsFolder?: string;
  on(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP', listener: () => void): unknown;
  off(signal: 'SIGHUP', listener: () => void): unknown;
  /** Ends the program at once: after a signal no step of a command may follow. */
  exit(code: number): void;
}

/** The context of a command, besides its flags. */
export interface CommandContext {
  readonly reporter: Reporter;
  /**
   * Prints an answer before the end, for a command that continues to run. With --json each answer is one line, and the last
   * one is the result.
   */
  announce(answer: Answer): void;
  /**
   * Takes the place of the answer shown before, on a terminal; elsewhere it is one line of these fields, and with --json
   * one object. Without fields nothing has changed, and only a terminal is redrawn.
   */
  redraw(answer: Answer, fields?: readonly string[]): void;
  readonly clock: Clock;
  /** Name of the running command, such as `status` or `repo status`. */
  readonly command: string;
  /** Version of this program. */
  readonly version: string;
  readonly surroundings: Surroundings;
  readonly env: Surroundings['env'];
  /** @returns the path to open for a typed path; undefined for undefined. Messages show the typed path */
  at<Path extends string | undefined>(path: Path): Path;
  /** Aborted by SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
  /** False without a terminal and with --no-input; the command must then not prompt. */
  readonly canAsk: boolean;
}

/** The answer of a command: one object for --json, one block for people. */
export interface Answer {
  /** Type of the JSON object, as `publish.preview`; left out: the command's, as `publish.result`. */
  readonly type?: string;
  /** The outcome word, as `published`; people read it in capitals at the start of the first line. */
  readonly outcome: string;
  /** Left out: 0. */
  readonly exitCode?: number;
  /** Health level, which sets the colour; left out if the exit code determines it. */
  readonly level?: HealthLevel;
  /** Further members of the JSON object: times as ISO 8601, digests as `sha256:...`, camelCase. */
  readonly details: Readonly<Record<string, unknown>>;
  /** The block for people, without its `Next:` line. Control characters in it are shown escaped. */
  readonly lines: readonly string[];
  /** Lines of the block that --quiet must not take away: a passphrase that is shown once. */
  readonly kept?: readonly string[];
  /** The one line to paste next. */
  readonly next?: string | undefined;
  /** The command that undoes this one; on its own line, so that it is not pasted by mistake. */
  readonly undo?: string | undefined;
  /** An error code in the answer; the output names its page. */
  readonly docs?: ErrorCode | undefined;
}

export interface CommandDefinition<Flags extends object = object> {
  /** First two at the top of the help, from easy to hard. */
  readonly examples: readonly string[];
  /** Lines for the help, as `0  published, or nothing new`. */
  readonly exitCodes: readonly string[];
  /** `drain`: run() sees context.signal and ends itself. Left out: a signal ends the process at once (130, 143). */
  readonly onSignal?: 'drain';
  /** The output with --quiet: `nothing` if the exit code is the answer; left out: the whole block. */
  readonly quiet?: 'nothing' | 'first-line';
  /** The exit code of failures and lost answers if exit code 1 is an answer of this command; left out: that of the error's kind. */
  readonly failureExitCode?: number;
  /**
   * Returns true for a command that changes something: its exit code reports the change even if its answer could not be written.
   * Left out, and with --dry-run: the command only answers, so a lost answer is a failure.
   */
  acts?(args: readonly (string | undefined)[], flags: Flags & CommonFlags): boolean;
  /** Positional arguments as commander takes them: `<source>` or `[file]`, a text for the help, and a parser. */
  readonly args?: readonly (readonly [name: string, text: string, parse?: (text: string) => unknown])[];
  /** The possible values of the first argument, for shell completion; left out if any value is possible. */
  readonly firstArguments?: readonly string[];
  /** Without --json, --quiet, --verbose, --color and --no-input, which every command has. */
  readonly flags: FlagTable<Flags>;
  /**
   * @param args the positional arguments as commander gives them: a missing optional one is undefined
   * @throws WritError for every failure that has a code; anything else is reported as INTERNAL
   */
  run(
    args: readonly (string | undefined)[],
    flags: Flags & CommonFlags,
    context: CommandContext,
  ): Promise<Answer>;
}

/** A row of the table of commands: the module is imported only when its command was typed. */
export interface CommandEntry {
  /** One word, or two for a command of a group, as `repo status`. */
  readonly name: string;
  readonly summary: string;
  /** The heading of the help under which it stands. */
  readonly group?: string;
  readonly load: () => Promise<{ readonly command: CommandDefinition }>;
}
