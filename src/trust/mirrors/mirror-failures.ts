// What is told of mirrors that failed: which errors another mirror can make good, and the one error for when none could.
// Pure. The code that says most comes first: an attack must not hide behind a mirror that is merely down.
import { type ErrorCode, isWritError, toWritError, WritError } from '../../core/errors.js';

/** One mirror that was left for the next one. */
export interface MirrorFailure {
  /** URL of the mirror. */
  readonly mirror: string;
  readonly error: WritError;
}

/**
 * Our own side, or a person who wants it to end: the same on every mirror. What is not here, a crash of our own
 * parser included, sends a reader on, or one mirror could stop a host.
 */
const mirrorIndependentCodes: ReadonlySet<ErrorCode> = new Set([
  'INTERRUPTED',
  'ROOT_MISSING',
  'ROOT_UNUSABLE',
  'TRUST_STORE_DAMAGED',
  // Every root of the chain was validly signed: it is the repository that has so many.
  'ROOT_CHAIN_TOO_LONG',
  'ARCHIVE_LIMIT',
  'DISK_FULL',
  'DISK_READ_ONLY',
  'DISK_DENIED',
  'DISK_FAILED',
]);

/** @returns true if the next mirror is worth asking */
export function canOtherMirrorHelp(error: WritError): boolean {
  return !mirrorIndependentCodes.has(error.code);
}

/** From what says least; a code that is not here, as a bad signature, says most. */
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
 * @param failures of every mirror, in the order in which they were tried; at least one
 * @returns the only one as it is; of several the one that says most, naming all. SERVER_BUSY only if every mirror
 *   asked for quiet: then with the shortest time
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

/** @returns how long the mirror asked to be left alone, in milliseconds */
export function retryAfterMsOf(error: WritError): number | undefined {
  const { retryAfterMs } = error.facts;
  return error.code === 'SERVER_BUSY' && typeof retryAfterMs === 'number' ? retryAfterMs : undefined;
}

/** @returns the failure as a warning of a cycle that another mirror saved */
export function mirrorWarning({ mirror, error }: MirrorFailure): WritError {
  const { code, message, facts, hint } = error;
  return new WritError(code, `mirror ${mirror}: ${message}`, { facts: { ...facts, mirror }, hint });
}

/** @param deadline of this mirror alone. @returns what happened, where a reader only saw that it was interrupted */
export function errorOfMirror(
  thrown: unknown,
  deadline: AbortSignal,
  caller: AbortSignal | undefined,
): WritError {
  const error = toWritError(thrown);
  const byDeadline = error.code === 'INTERRUPTED' && deadline.aborted && caller?.aborted !== true;
  return byDeadline && isWritError(deadline.reason) ? deadline.reason : error;
}
