// The configured answer that confirms: an exact text or a regular expression, for drivers with a protocol that has no verdict. An answer
// that only contains or resembles the exact text does not match.
import { WritError } from '../../core/errors.js';
import { type BoundedPattern, boundedPattern, type PatternVerdict } from '../../platform/bounded-pattern.js';
import { type OptionsOf, text } from './driver-options.js';
import { requireKnownPlaceholders } from './placeholders.js';

export interface Expectation {
  /** False without an expectation: then every answer matches. */
  readonly isGiven: boolean;
  /**
   * Ignores line ends at the end of the answer.
   * @param fill inserts the generation of the notification into the expected text, if the answer must contain it
   */
  judge(answer: string, fill: (text: string) => string): PatternVerdict;
}

export const expectProperties = {
  expect: text('a text (put it in quotes): the one answer that means yes, as "ok"', { maxLength: 4096 }),
  expectMatch: text('a regular expression, as "^0003 "', { minLength: 1, maxLength: 1000 }),
};

export type ExpectOptions = OptionsOf<typeof expectProperties, never>;

/**
 * @returns the test of an answer by `expect` or `expectMatch`, of which only one may be set
 * @throws WritError CONFIG_INVALID
 */
export function createExpectation({ expect, expectMatch }: ExpectOptions): Expectation {
  if (expect !== undefined && expectMatch !== undefined)
    throw new WritError('CONFIG_INVALID', 'reset has `expect` and `expectMatch`: give one of them');
  if (expectMatch !== undefined) {
    const sample = patternOf('expectMatch', fillPattern(expectMatch, String));
    const isFixed = expectMatch === fillPattern(expectMatch, String);
    const patternFor = (fill: (text: string) => string): BoundedPattern =>
      isFixed ? sample : patternOf('expectMatch', fillPattern(expectMatch, fill));
    return { isGiven: true, judge: (answer, fill) => patternFor(fill).test(answer) };
  }
  requireKnownPlaceholders('reset.expect', [expect ?? '']);
  return {
    isGiven: expect !== undefined,
    judge: (answer, fill) =>
      expect === undefined || withoutLineEnd(answer) === withoutLineEnd(fill(expect)) ? 'match' : 'no-match',
  };
}

/** Unambiguous, because braces around letters have no meaning in a regular expression. */
const placeholder = /(?<!\\)\{(?:current|generation|worker)\}/g;

/** Inserts texts literally, and a generation as a whole number: 12 must not match 1. */
function fillPattern(source: string, fill: (text: string) => string): string {
  return source.replace(placeholder, (one) => {
    const text = fill(one).replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
    return one === '{generation}' ? `(?:(?<![0-9])${text}(?![0-9]))` : `(?:${text})`;
  });
}

/**
 * @param key under `reset`, for the error, as `expectMatch`; `source` is the regular expression, in which `^` and `$` match at
 *   line ends
 * @returns the compiled pattern. Its `test` is `no-verdict` if it exceeds its time, and then throws nothing.
 * @throws WritError CONFIG_INVALID for an invalid regular expression, with `reset.<key>: ` and the cause in the message
 */
export function patternOf(key: string, source: string): BoundedPattern {
  try {
    return boundedPattern(source);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new WritError('CONFIG_INVALID', `reset.${key}: ${cause.message}`, { cause });
  }
}

/** Without a regular expression, which would take seconds for 64,000 line ends before another character. */
function withoutLineEnd(text: string): string {
  let end = text.length;
  while (text[end - 1] === '\n') end -= text[end - 2] === '\r' ? 2 : 1;
  return text.slice(0, end);
}
