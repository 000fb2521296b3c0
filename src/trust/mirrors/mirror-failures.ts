// The failures of mirrors: which errors another mirror may not have, and the one error if all mirrors failed. It has the code with
// the highest severity, so that an attack is not hidden by a mirror that is merely down. Pure.
import { type ErrorCode, isWritError, toWritError, WritError } from '../../core/errors.js';

/** The failure of one mirror, after which the next was tried. */
export interface MirrorFailure {
  /** URL of the mirror. */
  readonly mirror: string;
  readonly error: WritError;
}

/**
 * Errors of this host, and interruptions: the same for each mirror. All other errors, also a bug in a parser, lead to the next
 * mirror, because otherwise one mirror could stop a host.
 */
const mirrorIndependentCodes: ReadonlySet<ErrorCode> = new Set([
  'INTERRUPTED',
  'ROOT_MISSING',
  'ROOT_UNUSABLE',
  'TRUST_STORE_DAMAGED',
  // The signatures of all these roots are valid: the repository has too many.
  'ROOT_CHAIN_TOO_LONG',
  'ARCHIVE_LIMIT',
  'DISK_FULL',
  'DISK_READ_ONLY',
  'DISK_DENIED',
  'DISK_FAILED',
]);

/** @returns true if the next mirror may not have this error */
export function canOtherMirrorHelp(error: WritError): boolean {
  return !mirrorIndependentCodes.has(error.code);
}

/** From the lowest severity; a code that is not listed, as of a bad signature, has the highest. */
const codesBySeverity: readonly ErrorCode[] = [
  'SERVER_BUSY',
  'SERVER_UNREACHABLE',
  'PROXY_REFUSED',
  'DOWNLOAD_TIMEOUT',
  'DOWNLOAD_TRUNCATED',
  'SERVER_ERROR',
  'REDIRECT_REFUSED',
  'TARGET_MISSING',
  'METADATA_MISSING',
  'ROOT_NOT_LINKED',
  'METADATA_MALFORMED',
  'DOWNLOAD_TOO_LARGE',
  'METADATA_ROLLBACK',
  'METADATA_MIX',
  'METADATA_EXPIRED',
];

function severityOf({ error }: MirrorFailure): number {
  const at = codesBySeverity.indexOf(error.code);
  return at === -1 ? codesBySeverity.length : at;
}

/**
 * @param failures of each mirror in the order of the attempts, at least one
 * @returns the error of a single mirror unchanged; of several, the one with the highest severity, with all mirrors in its text.
 *   SERVER_BUSY only if each mirror sent a Retry-After: then with the shortest one
 */
export function joinFailures(failures: readonly MirrorFailure[]): WritError {
  const [first, ...others] = failures;
  if (first === undefined) return new WritError('INTERNAL', 'there is no mirror to ask');
  if (others.length === 0) return first.error;
  const worst = others.reduce((most, one) => (severityOf(one) > severityOf(most) ? one : most), first);
  const { code, hint, facts } = worst.error;
  const quiet = Math.min(...failures.map(({ error }) => retryAfterMsOf(error) ?? 0));
  const lines = failures.map(({ mirror, error }) => `${mirror} [${error.code}] ${error.message}`);
  return new WritError(code, `all ${failures.length} mirrors failed: ${lines.join('; ')}`, {
    facts: {
      ...facts,
      ...(code === 'SERVER_BUSY' ? { retryAfterMs: quiet } : {}),
      mirror: worst.mirror,
      mirrors: failures.map(({ mirror, error }) => ({ mirror, code: error.code })),
    },
    hint,
    cause: worst.error,
  });
}

/** @returns the Retry-After of the mirror in milliseconds; undefined without one */
export function retryAfterMsOf(error: WritError): number | undefined {
  const { retryAfterMs } = error.facts;
  return error.code === 'SERVER_BUSY' && typeof retryAfterMs === 'number' ? retryAfterMs : undefined;
}

/**
 * @returns the failure as a warning of a cycle in which another mirror succeeded: the same code, facts and hint, with the mirror
 *   before the message
 */
export function mirrorWarning({ mirror, error }: MirrorFailure): WritError {
  const { code, message, facts, hint } = error;
  return new WritError(code, `mirror ${mirror}: ${message}`, { facts: { ...facts, mirror }, hint });
}

/**
 * @param deadline of this mirror only
 * @returns the error of an attempt: the reason of the deadline if that interrupted it
 */
export function errorOfMirror(
  thrown: unknown,
  deadline: AbortSignal,
  caller: AbortSignal | undefined,
): WritError {
  const error = toWritError(thrown);
  const byDeadline = error.code === 'INTERRUPTED' && deadline.aborted && caller?.aborted !== true;
  return byDeadline && isWritError(deadline.reason) ? deadline.reason : error;
}
