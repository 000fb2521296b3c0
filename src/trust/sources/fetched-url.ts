// Which file an error of a fetch is about: its URL, for messages and facts. A query may hold a secret (a signed redirect), and so
// may the name before an @: both are left out. Never changes a code.
import { isWritError, WritError } from '../../core/errors.js';

/** Codes of what came, or did not come, from a mirror; those of this host's disk and of its own end have no URL. */
const fetchCodes = /^(?:SERVER|PROXY|REDIRECT|DOWNLOAD|METADATA|SIGNATURE)_|^TARGET_MISSING$/;

/** @returns what `act` returns. @throws what it throws; of a fetched file with `facts.url` */
export async function namingUrl<T>(url: string, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw withUrl(error, url);
  }
}

/** @returns the error with `facts.url`, as the source named it or else this one, and without the secrets of a URL in it */
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

/** @returns the text with `?...` in place of each query, and without names and passwords */
export function plainUrls(text: string): string {
  return text
    .replace(/(https?:\/\/)[^\s/?#@]*@/gi, '$1')
    .replace(/(https?:\/\/[^\s?#;,)]*)[?#][^\s;,)]*/gi, '$1?...');
}
