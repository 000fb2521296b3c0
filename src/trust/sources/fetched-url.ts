// Adds the URL of the file to an error of a fetch, without the query, which may contain a secret (a signed redirect), and without
// user and password. Never changes a code.
import { isWritError, WritError } from '../../core/errors.js';

/** Codes of errors at a mirror. Errors of the local disk and interruptions have no URL. */
const fetchCodes = /^(?:SERVER|PROXY|REDIRECT|DOWNLOAD|METADATA|SIGNATURE)_|^TARGET_MISSING$/;

/**
 * @returns the result of `act`
 * @throws the exceptions of `act`, with `facts.url`
 */
export async function namingUrl<T>(url: string, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw withUrl(error, url);
  }
}

/** @returns the error with `facts.url`, from the source or else from `url`, without secrets */
export function withUrl(error: unknown, url: string): unknown {
  if (!isWritError(error) || !fetchCodes.test(error.code)) return error;
  const { code, hint, cause } = error;
  const named = plainUrls(typeof error.facts['url'] === 'string' ? error.facts['url'] : url);
  const facts = Object.fromEntries(
    Object.entries({ ...error.facts, url: named }).map(([name, value]) => [
      name,
      typeof value === 'string' ? plainUrls(value) : value,
    ]),
  );
  const text = plainUrls(error.message);
  const message = text.includes(named) ? text : `${text} (${named})`;
  return new WritError(code, message, { facts, hint, cause });
}

/** @returns the text with `?...` in place of each query, and without users and passwords */
export function plainUrls(text: string): string {
  return text
    .replace(/(https?:\/\/)[^\s/?#@]*@/gi, '$1')
    .replace(/(https?:\/\/[^\s?#;,)]*)[?#][^\s;,)]*/gi, '$1?...');
}
