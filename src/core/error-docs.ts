// The page of an error code: its row, its exit code and its effect on the active policy. docs/errors.md, the pages of the site and
// `writ help CODE` use it.
import { type ErrorCode, type ErrorKind, type ErrorRow, errorCodes, exitCodeOfKind } from './error-codes.js';
import { errorEffects } from './error-effects.js';

/** Codes that never end a command. */
const warnings: ReadonlySet<ErrorCode> = new Set(['STATE_REBUILT', 'CONFIG_CHANGED', 'WORKER_RESTARTED']);

export interface ErrorPage {
  readonly code: ErrorCode;
  readonly kind: ErrorKind;
  /** As `exit code 3`, or that the code is always a warning. */
  readonly exit: string;
  readonly meaning: string;
  /** Effect on the active policy. */
  readonly effect: string;
  readonly hint: string;
}

/** @returns the complete page of a code, in Markdown */
export function errorPage(code: ErrorCode): ErrorPage {
  const { kind, meaning, hint }: ErrorRow = errorCodes[code];
  return { code, kind, exit: exitText(code), meaning, effect: errorEffects[code], hint };
}

function exitText(code: ErrorCode): string {
  const { kind, isImplicitRefusal }: ErrorRow = errorCodes[code];
  if (warnings.has(code)) return 'always a warning: it changes no exit code';
  const exitCode = exitCodeOfKind[kind];
  return isImplicitRefusal === true
    ? `exit code ${exitCodeOfKind['rolled-back']} of the pull that tried the release, ${exitCode} while it waits`
    : `exit code ${exitCode}`;
}
