// The one error type of Writ: a code from the catalogue, the facts, a hint and its exit code.
// Core returns verdicts where it can; what throws, throws this. Never contains secrets or unbounded text.
import { type ErrorCode, type ErrorKind, type ErrorRow, errorCodes } from './error-codes.js';

export { type ErrorCode, type ErrorKind, exitCodeOfKind, isUnsaidNo } from './error-codes.js';

/** @returns the command that prints the page of a code, with no network */
export function docsOf(code: ErrorCode): string {
  return `writ help ${code}`;
}

/** Facts beside the message; values are bounded and safe to print. */
export interface ErrorFacts {
  readonly expected?: string | number;
  readonly actual?: string | number;
  /** What became of the running policy, where the command was to change it. */
  readonly policy?: string;
  /** The policy is another one than before. */
  readonly changed?: boolean;
  readonly [name: string]: unknown;
}

export interface WritErrorOptions {
  readonly facts?: ErrorFacts;
  /** Overrides the hint of the catalogue when more is known. */
  readonly hint?: string;
  readonly cause?: unknown;
}

export class WritError extends Error {
  readonly code: ErrorCode;
  readonly kind: ErrorKind;
  readonly facts: ErrorFacts;
  readonly hint: string;

  /**
   * @param code a code of the catalogue (docs/errors.md)
   * @param message one sentence without full stop: what was found, with expected and actual
   */
  constructor(code: ErrorCode, message: string, options: WritErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    const entry: ErrorRow = errorCodes[code];
    this.name = 'WritError';
    this.code = code;
    this.kind = entry.kind;
    this.facts = options.facts ?? {};
    this.hint = options.hint ?? entry.hint;
  }

  toJSON(): { code: ErrorCode; kind: ErrorKind; message: string; hint: string; facts: ErrorFacts } {
    return { code: this.code, kind: this.kind, message: this.message, hint: this.hint, facts: this.facts };
  }
}

export function isWritError(value: unknown): value is WritError {
  return value instanceof WritError;
}

/** True for the error of a system call with this code, as ENOENT; a WritError has a code too, and is none. */
export function isSystemError(value: unknown, code?: string): value is NodeJS.ErrnoException {
  if (!(value instanceof Error) || isWritError(value) || !('code' in value)) return false;
  return code === undefined || value.code === code;
}

/** @returns what is read, or undefined where reading it ends with an error that has a code; any other one goes on */
export function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

/** As orUndefined, where the system refuses it: with one of these codes, or any where none is named. */
export function unlessRefused<T>(act: () => T, codes?: readonly string[]): T | undefined {
  try {
    return act();
  } catch (error) {
    if (!isSystemError(error) || codes?.includes(error.code ?? '') === false) throw error;
    return undefined;
  }
}

/** What Node says of `import()` and of `require`. */
const missingModule: readonly unknown[] = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'];

/** Whether a part of the program could not be loaded: every one was there when it was started. */
export function isMissingPart(value: unknown): boolean {
  return value instanceof Error && 'code' in value && missingModule.includes(value.code);
}

export function replacedProgram(cause?: unknown): WritError {
  const text =
    'the program was replaced on disk since this process began, or is incomplete: a part of it is missing';
  const [missing] = cause instanceof Error ? cause.message.slice(0, 500).split('\n') : [];
  return new WritError('PROGRAM_REPLACED', text, {
    ...(missing === undefined ? {} : { facts: { missing } }),
    cause,
  });
}

/** The packages of the fleet server, which a host has no use for: optional where npm installs, `writ-fleet` in Debian. */
export const fleetPackages = ['fastify', 'kysely', 'libsql', 'pg', 'preact', 'preact-render-to-string'];

/** @returns which of them it was that could not be loaded; the library of an embedded database goes by the name of its machine */
function missingPackage(message: string): string | undefined {
  const name = /^Cannot find (?:package|module) '((?:@[^/']+\/)?[^/']+)/.exec(message)?.[1];
  return name !== undefined && (fleetPackages.includes(name) || name.startsWith('@libsql/'))
    ? name
    : undefined;
}

function notInstalled(missing: string, cause: unknown): WritError {
  const text = `this command needs the package writ-fleet, which is not installed: ${missing} is missing`;
  return new WritError('PACKAGE_MISSING', text, { facts: { package: 'writ-fleet', missing }, cause });
}

/** Turns whatever was thrown into a WritError; an unknown one becomes INTERNAL with its cause kept. */
export function toWritError(value: unknown): WritError {
  if (isWritError(value)) return value;
  if (isMissingPart(value)) {
    const missing = value instanceof Error ? missingPackage(value.message) : undefined;
    return missing === undefined ? replacedProgram(value) : notInstalled(missing, value);
  }
  const message = value instanceof Error ? value.message : String(value);
  return new WritError('INTERNAL', message, { cause: value });
}
