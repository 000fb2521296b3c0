// Prints all output of commands on stdout and stderr: answers, errors, progress, colours and JSON. Untrusted text (revisions,
// file names, hook output) is printed with control characters escaped, so that a bundle cannot control the terminal of the
// reader.

import { type ErrorCode, exitCodeOfKind, type WritError } from '../../core/errors.js';
import { withoutUndefined } from '../../core/given.js';
import type { HealthLevel } from '../../core/status/host-health.js';
import { printable } from '../../core/text/printable.js';
import {
  openStreamText,
  type StreamText,
  type TextLosses,
} from '../../platform/telemetry/standard-streams.js';
import type { Clock } from '../../platform/time/clock.js';
import type { Answer, CommandDefinition, Reporter, StepState, Surroundings } from './command.js';
import { type DocsPlaces, docsPage, docsText } from './docs-address.js';
import type { CommonFlags } from './flags.js';
import { type Paint, painter, type Style } from './paint.js';
import { createProgressLine } from './progress-line.js';
import { stopwatch } from './stopwatch.js';
import { cutToColumns, printableJson } from './terminal-text.js';

/** Version of the JSON objects: within one number, members are only added. */
const jsonSchemaVersion = 1;

export type RenderOptions = Pick<CommonFlags, 'color'> & Partial<CommonFlags>;

export type Renderer = ReturnType<typeof createRenderer>;

/**
 * Answers go to stdout, the rest to stderr; errors with --json go to stdout.
 * @param type of the JSON object of an error, and of an answer that has no other
 */
export function createRenderer(
  options: RenderOptions,
  streams: Pick<Surroundings, 'stdout' | 'stderr'> & DocsPlaces,
  type: string,
) {
  const loss = new AbortController();
  const answers = openStreamText(streams.stdout, () => loss.abort());
  const narration = openStreamText(streams.stderr);
  const out = (text: string): void => answers.write(`${text}\n`);
  const paintOut = painter(options.color, streams.stdout, streams.env);
  const paintErr = painter(options.color, streams.stderr, streams.env);
  const live = createLiveLine(narration);
  const show = (answer: Answer): void => {
    live.clear();
    const lines = options.json
      ? [printableJson(jsonOfAnswer({ type, ...answer }, streams))]
      : linesOfAnswer(answer, paintOut, streams);
    for (const line of lines) out(line);
  };
  return {
    /** @param quiet what --quiet leaves of it */
    answer: (answer: Answer, quiet?: CommandDefinition['quiet']): void => {
      const isCut = options.quiet && !options.json && quiet !== undefined;
      const first = quiet === 'nothing' ? [] : answer.lines.slice(0, 1);
      const lines = [...first, ...(answer.kept ?? [])];
      show(isCut ? { ...answer, lines, next: undefined, undo: undefined } : answer);
    },
    redraw: (answer: Answer, fields?: readonly string[]): void => {
      const isTerminal = streams.stdout.isTTY === true && !options.json;
      if (isTerminal)
        answers.write(
          pageOf(streams.stdout, linesOfAnswer(answer, paintOut, streams, streams.stdout.columns)),
        );
      else if (fields !== undefined && options.json) show(answer);
      else if (fields !== undefined) out(fields.map(printable).join('\t'));
    },
    /** @param exitCode in place of the one of the error's kind, as 143 after SIGTERM. @returns the exit code */
    error: (error: WritError, exitCode = exitCodeOf(error)): number => {
      live.clear();
      if (options.json) out(printableJson(jsonOfError(type, exitCode, error, streams)));
      else narration.write(linesOfError(error, paintErr, options, streams).join(''));
      return exitCode;
    },
    reporter: (clock: Clock) =>
      createReporter({ options, stderr: streams.stderr, narration, paint: paintErr, clock, live }),
    /** Help and version texts, as they are. */
    raw: (text: string) => answers.write(text),
    /** Aborted when a line of an answer could not be written. */
    answerLost: loss.signal,
    /** Resolves when each answer so far was written or lost. */
    lostAnswers: (): Promise<TextLosses> => answers.settled(),
  };
}

/** Ctrl-C at a prompt is the same as Ctrl-C elsewhere: 128 and the number of SIGINT. */
function exitCodeOf({ code, kind }: WritError): number {
  return code === 'INTERRUPTED' ? 130 : exitCodeOfKind[kind];
}

function jsonOfAnswer(answer: Answer, places: DocsPlaces): object {
  const { type, outcome, exitCode = 0, details, docs, next, undo } = answer;
  const page = docs === undefined ? {} : docsPage(docs, places);
  const last = withoutUndefined<Pick<Answer, 'next' | 'undo'>>({ next, undo });
  return { schema: jsonSchemaVersion, type, outcome, exitCode, ...details, ...page, ...last };
}

function jsonOfError(type: string, exitCode: number, error: WritError, places: DocsPlaces): object {
  const { code, kind, message, hint, facts } = error;
  const { changed } = facts;
  const policy = changed === undefined ? {} : { changed };
  return {
    schema: jsonSchemaVersion,
    type,
    outcome: kind,
    exitCode,
    code,
    message,
    hint,
    ...docsPage(code, places),
    ...policy,
    facts,
  };
}

const levelStyle = { ok: 'green', warning: 'yellow', critical: 'red' } as const;

function levelOf(exitCode = 0): HealthLevel {
  if (exitCode === 0) return 'ok';
  return exitCode === exitCodeOfKind.degraded || exitCode === exitCodeOfKind.deferred
    ? 'warning'
    : 'critical';
}

/** Counts the lines that do not fit, because a page that scrolls would hide its first line, which is the summary. */
function pageOf(stdout: NodeJS.WriteStream, lines: readonly string[]): string {
  const rows = Math.max(3, stdout.rows ?? lines.length + 1) - 1;
  const left = lines.length - rows + 1;
  const page = left <= 1 ? lines : [...lines.slice(0, -left), `(${left} more lines)`];
  return `${clearScreen}${page.join('\n')}\n`;
}

const outcomeLabel = /^[A-Z]{2,}(?: [A-Z]{2,})*(?![a-z])/;

/** @param columns of the terminal that lines must not wrap on; left out: they are complete */
function linesOfAnswer(answer: Answer, paint: Paint, places: DocsPlaces, columns?: number): string[] {
  const style = levelStyle[answer.level ?? levelOf(answer.exitCode)];
  const lines = answer.lines.map((line) => fit(printable(line), columns));
  const first = lines[0]?.replace(outcomeLabel, (label) => paint(style, label));
  const block = first === undefined ? [] : [first, ...lines.slice(1)];
  const { docs, next, undo } = answer;
  const ends = [
    ...(docs === undefined ? [] : [`docs: ${docsText(docs, places)}`]),
    ...(undo === undefined ? [] : [`Undo: ${undo}`]),
    ...(next === undefined ? [] : [`Next: ${next}`]),
  ];
  return [...block, ...ends.map((line) => fit(printable(line), columns))];
}

/** Codes without a page reference: the message of a mistyped or interrupted command is sufficient. */
const withoutPage: ReadonlySet<ErrorCode> = new Set(['USAGE', 'INTERRUPTED']);

function linesOfError(error: WritError, paint: Paint, options: RenderOptions, places: DocsPlaces): string[] {
  const { expected, actual, policy } = error.facts;
  const facts = [
    ...(expected === undefined ? [] : [`expected ${expected}`]),
    ...(actual === undefined ? [] : [`actual ${actual}`]),
  ].join(', ');
  const text = facts === '' ? error.message : `${error.message} (${facts})`;
  const cause = options.verbose && error.cause instanceof Error ? error.cause.stack : undefined;
  return [
    `${paint('red', `error[${error.code}]`)}: ${printableLines(text)}\n`,
    ...(policy === undefined ? [] : [`  ${printable(policy)}.\n`]),
    `hint: ${printable(error.hint)}\n`,
    ...(withoutPage.has(error.code) ? [] : [`docs: ${docsText(error.code, places)}\n`]),
    ...(cause === undefined ? [] : [`${printableLines(cause)}\n`]),
  ];
}

const silentReporter: Omit<Reporter, 'warn'> = {
  begin: () => undefined,
  progress: () => undefined,
  finish: () => undefined,
  drop: () => undefined,
  note: () => undefined,
};

interface ReporterParts {
  readonly options: RenderOptions;
  readonly stderr: NodeJS.WriteStream;
  readonly narration: StreamText;
  readonly paint: Paint;
  readonly clock: Clock;
  readonly live: ReturnType<typeof createLiveLine>;
}

function createReporter(parts: ReporterParts): Reporter {
  const { options, stderr, narration, paint, live } = parts;
  const warn = (text: string): void => {
    live.clear();
    narration.write(`${paint('yellow', 'warning')}: ${printable(text)}\n`);
  };
  // A script that asked for JSON wants one answer; it gets the steps too when it asks for them.
  if (options.quiet || (options.json && !options.verbose)) return { ...silentReporter, warn };
  return { ...(stderr.isTTY ? terminalReporter(parts) : plainReporter(parts)), warn };
}

/** Interval of updates, because faster updates are not readable and each one is a write. */
const redrawEveryMs = 100;
const clearLine = '\r\u001b[2K';
/** To the first place of the screen, and everything behind it away. */
const clearScreen = '\u001b[H\u001b[2J';

/** The one line that is redrawn on a terminal: whatever is written next clears it first. */
function createLiveLine(narration: StreamText) {
  let drawn = false;
  return {
    draw: (line: string): void => {
      narration.write(`${clearLine}${line}`);
      drawn = true;
    },
    clear: (): void => {
      if (drawn) narration.write(clearLine);
      drawn = false;
    },
  };
}

function plainReporter({ options, narration, clock }: ReporterParts): Omit<Reporter, 'warn'> {
  const steps = stopwatch(clock);
  const line = (...fields: readonly string[]): void =>
    narration.write(`${[new Date(clock.nowMs()).toISOString(), ...fields.map(printable)].join('\t')}\n`);
  return {
    begin: (step, text = '') => {
      steps.start(step);
      // The beginning of a step has a line too.
      if (options.verbose) line(step, 'begin', text);
    },
    // A log is read when it is over.
    progress: () => undefined,
    finish: (step, text, state = 'ok') => line(step, state, text, seconds(steps.stop(step))),
    drop: (step) => void steps.stop(step),
    note: (text) => line('', '', text),
  };
}

const stateStyle: Readonly<Record<StepState, Style | undefined>> = {
  ok: undefined,
  warn: 'yellow',
  FAIL: 'red',
  skip: 'dim',
};

function terminalReporter(parts: ReporterParts): Omit<Reporter, 'warn'> {
  const { stderr, narration, paint, clock, live } = parts;
  const steps = stopwatch(clock);
  const write = (line: string): void => {
    live.clear();
    narration.write(`${line}\n`);
  };
  const lineOf = (step: string, text: string): string =>
    fit(`  ${printable(step).padEnd(9)} ${printable(text)}`, stderr.columns);
  const progressOf = new Map<string, ReturnType<typeof createProgressLine>>();
  let drawnMs = Number.NEGATIVE_INFINITY;
  return {
    begin: (step, text = '') => {
      steps.start(step);
      drawnMs = Number.NEGATIVE_INFINITY;
      live.draw(paint('dim', lineOf(step, text)));
    },
    progress: (step, amount, text = '') => {
      const nowMs = clock.monotonicMs();
      if (nowMs - drawnMs < redrawEveryMs && amount.done < amount.total) return;
      drawnMs = nowMs;
      const line = progressOf.get(step) ?? createProgressLine();
      progressOf.set(step, line);
      const far = line(amount, nowMs);
      live.draw(paint('dim', lineOf(step, text === '' ? far : `${text}   ${far}`)));
    },
    finish: (step, text, state = 'ok') => {
      progressOf.delete(step);
      const style = stateStyle[state];
      const label = style === undefined ? '' : `${paint(style, state)} `;
      const body = `  ${printable(step).padEnd(9)} ${label}${printable(text)}`;
      write(`${body}  ${paint('dim', seconds(steps.stop(step)))}`);
    },
    drop: (step) => {
      progressOf.delete(step);
      steps.stop(step);
      live.clear();
    },
    note: (text) => write(`            ${printable(text)}`),
  };
}

function fit(line: string, columns: number | undefined): string {
  // A progress line that wraps cannot be cleared by one carriage return.
  return columns === undefined || columns === 0 ? line : cutToColumns(line, columns - 1);
}

function seconds(durationMs: number | undefined): string {
  return durationMs === undefined ? '' : `${(durationMs / 1000).toFixed(1)} s`;
}

/** Further lines are indented, so that none can pass for a line of ours. */
function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n  ');
}
