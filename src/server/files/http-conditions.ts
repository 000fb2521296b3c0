// Evaluates If-None-Match, Range and If-Range (RFC 9110 sections 13 and 14), for strong ETags only. Pure. A request for
// several ranges gets the complete file, because no client needs several ranges to resume a download.

/** The first and the last byte, both inclusive. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** True when the client's copy is current. If-None-Match compares weakly (RFC 9110 section 13.1.2). */
export function isNotModified(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch === etag || ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((one) => one.trim().replace(/^W\//, '') === etag);
}

const singleRange = /^bytes=([0-9]{0,15})-([0-9]{0,15})$/;

/**
 * @param range the Range header
 * @param ifRange the If-Range header. With another ETag, or a date, the complete file is sent, because the client would otherwise
 *   combine bytes of two files
 * @param length of the complete file, in bytes
 * @returns first and last byte, both included; `unsatisfiable` for a first byte behind the end; undefined for the complete file,
 *   also for a malformed range or several
 */
export function parseRange(
  range: string | undefined,
  ifRange: string | undefined,
  etag: string,
  length: number,
): ByteRange | 'unsatisfiable' | undefined {
  const match = singleRange.exec(range ?? '');
  if (match === null || (ifRange !== undefined && ifRange !== etag)) return undefined;
  const [, from = '', to = ''] = match;
  if (from === '') return to === '' ? undefined : suffixRange(Number(to), length);
  const first = Number(from);
  const last = to === '' ? length - 1 : Math.min(Number(to), length - 1);
  if (to !== '' && Number(to) < first) return undefined;
  return first >= length ? 'unsatisfiable' : { first, last };
}

function suffixRange(count: number, length: number): ByteRange | 'unsatisfiable' {
  if (count === 0 || length === 0) return 'unsatisfiable';
  return { first: Math.max(length - count, 0), last: length - 1 };
}
