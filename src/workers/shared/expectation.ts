// The answer that a user takes for a yes: an exact text or a regular expression, for drivers whose protocol has no
// verdict of its own. Never takes an answer that only contains or resembles the expected text.
import { WritError } from '../../core/errors.js';
import { type BoundedPattern, boundedPattern } from '../../platform/bounded-pattern.js';
import { type OptionsOf, text } from './driver-options.js';
import { requireKnownPlaceholders } from './placeholders.js';

export type Met = 'yes' | 'no' | 'no-verdict';

export interface Expectation {
  /** False where nothing is expected: then every answer will do. */
  readonly isGiven: boolean;
  /**
   * Line ends at the end of the answer do not count.
   * @param fill puts the generation that is notified into the expected text, where the answer must name it
   */
  judge(answer: string, fill: (text: string) => string): Met;
}

export const expectProperties = {
  expect: text('a text (put it in quotes): the one answer that means yes, as "ok"', { maxLength: 4096 }),
  expectMatch: text('a regular expression, as "^0003 "', { minLength: 1, maxLength: 1000 }),
};

export type ExpectOptions = OptionsOf<typeof expectProperties, never>;

/** @throws WritError CONFIG_INVALID */
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
      expect === undefined || withoutLineEnd(answer) === withoutLineEnd(fill(expect)) ? 'yes' : 'no',
  };
}

/** Braces around letters are no regular expression of their own: nothing else can be meant. */
const placeholder = /(?<!\\)\{(?:current|generation|worker)\}/g;

/** What is filled in stands for itself, and a generation for the whole number: 1 is not proved by 12. */
function fillPattern(source: string, fill: (text: string) => string): string {
  return source.replace(placeholder, (one) => {
    const text = fill(one).replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
    return one === '{generation}' ? `(?:(?<![0-9])${text}(?![0-9]))` : `(?:${text})`;
  });
}

/** @throws WritError CONFIG_INVALID when it is no regular expression */
export function patternOf(key: string, source: string): BoundedPattern {
  try {
    return boundedPattern(source);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new WritError('CONFIG_INVALID', `reset.${key}: ${cause.message}`, { cause });
  }
}

/** By hand: on 64,000 line ends that end in something else a pattern runs for seconds. */
function withoutLineEnd(text: string): string {
  let end = text.length;
  while (text[end - 1] === '\n') end -= text[end - 2] === '\r' ? 2 : 1;
  return text.slice(0, end);
}
