// What a command is: flags in, one answer out. Types and their few constructors only; it imports nothing at
// run time, so that the table of commands costs nothing. How answers look is render's.
import type { ErrorCode } from '../../core/error-codes.js';
import type { HealthLevel } from '../../core/status/host-health.js';
import type { Amount, WorkReport } from '../../core/work-report.js';
import type { Clock } from '../../platform/time/clock.js';
import type { CommonFlags, FlagTable } from './flags.js';

export type StepState = 'ok' | 'warn' | 'FAIL' | 'skip';

/**
 * The narration of a command, on stderr. On a terminal the step under way is one live line that its end
 * replaces; elsewhere each finished step is one line with tabs. Nothing here is the answer.
 */
export interface Reporter extends WorkReport {
  /** A step is under way; a second call for the same step changes the live line. */
  begin(step: string, text?: string): void;
  /** Changes the live line of a terminal, ten times a second at most; without one nothing is said. */
  progress(step: string, amount: Amount, text?: string): void;
  /** A step has ended; its time since `begin` is shown. The default state is `ok`. */
  finish(step: string, text: string, state?: StepState): void;
  /** A step has ended with nothing to say: its live line goes. */
  drop(step: string): void;
  /** A line that belongs to the step before it. */
  note(text: string): void;
  /** Something a person should know that changes no outcome; shown with --quiet too. */
  warn(text: string): void;
}

/** What the program takes of its surroundings, of which `process` is one. */
export interface Surroundings {
  readonly stdin: NodeJS.ReadStream & { readonly fd: number };
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The time of the command; left out: the time of the system. */
  readonly clock?: Clock;
  /** When this version was released; left out: known for the time of the system alone. */
  readonly releasedAtMs?: number;
  /** Where relative paths begin; left out: the directory of the process, and paths stay as they were typed. */
  readonly directory?: string;
  /** Where unit files are; left out: where systemd looks. */
  readonly unitFolders?: readonly string[];
  /** Where the built site of the documentation is; left out: where the package of this program has it, if it came in one. */
  readonly docsFolder?: string;
  on(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP', listener: () => void): unknown;
  off(signal: 'SIGHUP', listener: () => void): unknown;
  /** Ends the program at once: after a signal no step of a command may follow. */
  exit(code: number): void;
}

/** What a command may use of the world beside its flags. */
export interface CommandContext {
  readonly reporter: Reporter;
  /**
   * Prints an answer before the end: a command that goes on running says what it does now. With --json the
   * answers are one a line, the last is the result.
   */
  announce(answer: Answer): void;
  /**
   * Takes the place of the answer shown before, on a terminal; elsewhere it is one line of these fields, and with --json
   * one object. Without fields there is no news, and a terminal alone is drawn again.
   */
  redraw(answer: Answer, fields?: readonly string[]): void;
  readonly clock: Clock;
  /** Name of the command that runs, as `status` or `repo status`. */
  readonly command: string;
  /** Version of this program. */
  readonly version: string;
  readonly surroundings: Surroundings;
  readonly env: Surroundings['env'];
  /** @returns the path to open for one that was typed, if one was; people are shown the typed one */
  at<Path extends string | undefined>(path: Path): Path;
  /** Aborted by SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
  /** False without a terminal and with --no-input: then nothing may be asked. */
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
  /** How good that is, which its colour repeats; left out where the exit code says it. */
  readonly level?: HealthLevel;
  /** Further members of the JSON object: times as ISO 8601, digests as `sha256:...`, camelCase. */
  readonly details: Readonly<Record<string, unknown>>;
  /** The block for people, without its `Next:` line. Control characters in it are shown escaped. */
  readonly lines: readonly string[];
  /** Lines of the block that --quiet must not take away: a passphrase that is shown once. */
  readonly kept?: readonly string[];
  /** The one line to paste next. */
  readonly next?: string | undefined;
  /** The one line that takes back what was done: nobody pastes it by mistake. */
  readonly undo?: string | undefined;
  /** The code in it, whose page says what to do about it. */
  readonly docs?: ErrorCode | undefined;
}

export interface CommandDefinition<Flags extends object = object> {
  /** First two at the top of the help, from easy to hard. */
  readonly examples: readonly string[];
  /** Lines for the help, as `0  published, or nothing new`. */
  readonly exitCodes: readonly string[];
  /** `drain`: run() sees context.signal and ends itself. Left out: a signal ends the process at once (130, 143). */
  readonly onSignal?: 'drain';
  /** What --quiet leaves: `nothing` where the exit code is the answer; left out: the whole block. */
  readonly quiet?: 'nothing' | 'first-line';
  /** In place of the exit code of the error's kind, and of a lost answer, where 1 is an answer. */
  readonly failureExitCode?: number;
  /**
   * True for a command that changes something: what it did is its exit code, also where its answer could not be written.
   * Left out: it only answers, and a lost answer is a failure. So it is with --dry-run.
   */
  acts?(args: readonly (string | undefined)[], flags: Flags & CommonFlags): boolean;
  /** Positional arguments as commander takes them: `<source>` or `[file]`, a text for the help, and a parser. */
  readonly args?: readonly (readonly [name: string, text: string, parse?: (text: string) => unknown])[];
  /** What the first argument may be, where that is one of a few words: for the completion of shells. */
  readonly firstWords?: readonly string[];
  /** --json, --quiet, --verbose, --color and --no-input are there already. */
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
