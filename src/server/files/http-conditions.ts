// What If-None-Match, Range and If-Range ask for (RFC 9110 sections 13 and 14), for strong ETags only.
// Pure. Several ranges in one request are answered whole: nobody who resumes a download needs them.

/** First and last byte, both inclusive. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** True when the client's copy is the current one; If-None-Match compares weakly (RFC 9110 section 13.1.2). */
export function isNotModified(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch === etag || ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((one) => one.trim().replace(/^W\//, '') === etag);
}

const singleRange = /^bytes=([0-9]{0,15})-([0-9]{0,15})$/;

/**
 * @param range the Range header
 * @param ifRange the If-Range header: with another ETag, or a date, the whole file is due, or bytes of two
 *   files would be glued together
 * @param length of the whole file, in bytes
 * @returns undefined for the whole file
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
