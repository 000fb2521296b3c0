// The error type of Writ: a code of the catalogue, facts, a hint and the kind, which determines the exit code. Core returns verdicts
// where it can; all its exceptions have this type. Contains neither secrets nor unbounded text.
import { type ErrorCode, type ErrorKind, type ErrorRow, errorCodes } from './error-codes.js';

export { type ErrorCode, type ErrorKind, exitCodeOfKind, isImplicitRefusal } from './error-codes.js';

/** @returns the command that prints the page of a code without network */
export function docsOf(code: ErrorCode): string {
  return `writ help ${code}`;
}

/** Facts in addition to the message; values are bounded and safe to print. */
export interface ErrorFacts {
  readonly expected?: string | number;
  readonly actual?: string | number;
  /** Effect on the active policy, if the command was to change it. */
  readonly policy?: string;
  /** True if another policy is active than before. */
  readonly changed?: boolean;
  readonly [name: string]: unknown;
}

export interface WritErrorOptions {
  readonly facts?: ErrorFacts;
  /** Replaces the hint of the catalogue by a more specific one. */
  readonly hint?: string;
  readonly cause?: unknown;
}

export class WritError extends Error {
  readonly code: ErrorCode;
  readonly kind: ErrorKind;
  readonly facts: ErrorFacts;
  readonly hint: string;

  /**
   * @param code of the catalogue (docs/errors.md)
   * @param message one sentence without full stop about the failure, with expected and actual value
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

/**
 * @returns whether the value is an error with a code of the catalogue; false for errors of the system and of libraries
 */
export function isWritError(value: unknown): value is WritError {
  return value instanceof WritError;
}

/** @returns true for the error of a system call, with this code if one is given, as ENOENT; false for a WritError */
export function isSystemError(value: unknown, code?: string): value is NodeJS.ErrnoException {
  if (!(value instanceof Error) || isWritError(value) || !('code' in value)) return false;
  return code === undefined || value.code === code;
}

/** @returns the result of `read`, or undefined if it throws a WritError; rethrows any other error */
export function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

/** @returns the result of `act`, or undefined if it throws a system error: with one of `codes`, or any if `codes` is undefined */
export function unlessRefused<T>(act: () => T, codes?: readonly string[]): T | undefined {
  try {
    return act();
  } catch (error) {
    if (!isSystemError(error) || codes?.includes(error.code ?? '') === false) throw error;
    return undefined;
  }
}

/** Error codes of `import()` and of `require` in Node. */
const missingModule: readonly unknown[] = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'];

/** @returns true if a module of the program could not be loaded, although each existed when the program started */
export function isMissingPart(value: unknown): boolean {
  return value instanceof Error && 'code' in value && missingModule.includes(value.code);
}

/**
 * @param cause the error of the failed load; the first line of its message becomes the fact `missing`
 * @returns the error PROGRAM_REPLACED
 */
export function replacedProgram(cause?: unknown): WritError {
  const text =
    'the program was replaced on disk since this process began, or is incomplete: a part of it is missing';
  const [missing] = cause instanceof Error ? cause.message.slice(0, 500).split('\n') : [];
  return new WritError('PROGRAM_REPLACED', text, {
    ...(missing === undefined ? {} : { facts: { missing } }),
    cause,
  });
}

/** The packages of the fleet server, which hosts do not need: optional for npm, in the package `writ-fleet` for Debian. */
export const fleetPackages = ['fastify', 'kysely', 'libsql', 'pg', 'preact', 'preact-render-to-string'];

/**
 * @returns the package of the fleet server that could not be loaded; the name of the library for an embedded database depends on the
 *   machine
 */
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

/** @returns any thrown value as a WritError; an unknown one as INTERNAL with its cause */
export function toWritError(value: unknown): WritError {
  if (isWritError(value)) return value;
  if (isMissingPart(value)) {
    const missing = value instanceof Error ? missingPackage(value.message) : undefined;
    return missing === undefined ? replacedProgram(value) : notInstalled(missing, value);
  }
  const message = value instanceof Error ? value.message : String(value);
  return new WritError('INTERNAL', message, { cause: value });
}
