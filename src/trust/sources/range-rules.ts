// The range request that resumes a transfer, and the verdict on its response: where its bytes begin, or that this server cannot
// resume it. A target has its digest in its name, so that a resumption is also requested without a version. If the server sends
// ETags, bytes of two versions are never combined. Pure.
import { WritError } from '../../core/errors.js';
import type { HttpExchange } from '../../platform/net/http-client.js';
import { targetMissing, tooLarge, truncated } from './exact-length.js';

export interface WantedRange {
  /** Signed length of the whole file. */
  readonly length: number;
  /** Number of bytes at the start that the caller has already. */
  readonly offset: number;
  /** ETag of the version of these bytes, as this server sent it. */
  readonly etag?: string | undefined;
}

export type RangeResponse = Pick<HttpExchange, 'status' | 'contentLength' | 'header'>;

export type BeginVerdict =
  | { readonly kind: 'begins'; readonly offset: number; readonly etag: string | undefined }
  /** The whole file must be requested. */
  | { readonly kind: 'anew' };

/**
 * @returns the strong ETag; undefined for none, for a weak one, which may have two contents (RFC 9110, 13.1.5), and for one that is
 *   too long
 */
export function strongEtag(text: string | undefined): string | undefined {
  return text !== undefined && /^"[\x21\x23-\x7e]{1,198}"$/.test(text) ? text : undefined;
}

/** @returns the headers that request the missing bytes */
export function rangeHeaders({ offset, etag }: WantedRange): Record<string, string> {
  if (offset === 0) return {};
  const version = strongEtag(etag);
  return { range: `bytes=${offset}-`, ...(version === undefined ? {} : { 'if-range': version }) };
}

/**
 * @param url for messages
 * @throws WritError TARGET_MISSING; DOWNLOAD_TOO_LARGE or DOWNLOAD_TRUNCATED for a declared length that was not signed; SERVER_ERROR
 */
export function judgeResponse(answer: RangeResponse, wanted: WantedRange, url: string): BeginVerdict {
  const { length, offset } = wanted;
  const etag = strongEtag(answer.header('etag'));
  switch (answer.status) {
    case 404:
      throw targetMissing(url);
    case 416:
      // The file ends before the offset: the file of the server or the bytes here are not the signed ones.
      if (offset === 0) throw truncated(url, length, 0);
      return { kind: 'anew' };
    case 200:
      requireDeclared(answer, length, url);
      return { kind: 'begins', offset: 0, etag };
    case 206:
      if (offset === 0) throw unexpectedStatus(answer, url);
      return isTheRest(answer, wanted) ? { kind: 'begins', offset, etag } : { kind: 'anew' };
    default:
      throw unexpectedStatus(answer, url);
  }
}

function requireDeclared({ contentLength }: RangeResponse, expected: number, url: string): void {
  const declared = contentLength ?? expected;
  if (declared > expected) throw tooLarge(url, expected, declared);
  if (declared < expected) throw truncated(url, expected, declared);
}

/**
 * @returns true if the response is exactly the requested range of the same version: other bytes would be appended to those that they
 *   do not belong to
 */
function isTheRest(answer: RangeResponse, { length, offset, etag }: WantedRange): boolean {
  const range = answer.header('content-range');
  const isAsked = [`${length}`, '*'].some((total) => range === `bytes ${offset}-${length - 1}/${total}`);
  const isLong = (answer.contentLength ?? length - offset) === length - offset;
  const parts = /^multipart\//i.test(answer.header('content-type') ?? '');
  const [before, now] = [strongEtag(etag), strongEtag(answer.header('etag'))];
  const isOther = before !== undefined && now !== undefined && before !== now;
  return isAsked && isLong && !parts && !isOther;
}

function unexpectedStatus({ status }: RangeResponse, url: string): WritError {
  return new WritError('SERVER_ERROR', `${url} answered with status ${status} out of turn`, {
    facts: { url, status },
  });
}
