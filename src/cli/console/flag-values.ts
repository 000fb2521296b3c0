// Parsers for the values of flags. Each rejects a wrong value with a text that describes the accepted ones. Pure except for commander's
// error type.
import { InvalidArgumentError } from '#commander';
import { WritError } from '../../core/errors.js';
import { isName, parseDuration, parsePercent } from '../../core/names.js';
import { maxReadSerial, maxSerial } from '../../core/release/serial.js';

/** A duration as `30d`; the flag's value becomes milliseconds. @throws an error of commander for 0 and any other text */
export function durationFlag(text: string): number {
  const durationMs = parseDuration(text);
  if (durationMs === undefined || durationMs === 0) {
    throw new InvalidArgumentError('A duration is a number with ms, s, m, h or d, for example 30d.');
  }
  return durationMs;
}

/** A percentage above 0 with at most 4 decimals; the flag's value becomes parts of a million. @throws an error of commander */
export function shareFlag(text: string): number {
  const percent = /^[0-9]{1,3}(?:\.[0-9]{1,4})?%$/.test(text) ? Number(text.slice(0, -1)) : Number.NaN;
  if (!(percent > 0 && percent <= 100))
    throw new InvalidArgumentError('A share is a percentage, for example 100% or 99.5%.');
  return Math.round(percent * 10_000);
}

/** The limit of the agent. */
const maxReasonCharacters = 200;

/** Parses the short reason of an operator. @throws an error of commander for an empty text, or one above maxReasonCharacters */
export function reasonFlag(text: string): string {
  if (text !== '' && text.length <= maxReasonCharacters) return text;
  throw new InvalidArgumentError(`A reason has 1 to ${maxReasonCharacters} characters.`);
}

/** @returns the number of a generation; undefined for undefined. @throws WritError USAGE for any other text */
export function generationOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9][0-9]{0,14}$/.test(text)) return Number(text);
  throw new WritError('USAGE', `${text} is not a generation number`, {
    hint: 'Generations are numbers: writ history.',
  });
}

const timePattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2})$/;

/** A time with its zone, as `2026-12-27T08:00Z`; the flag's value becomes epoch milliseconds. @throws an error of commander */
export function timeFlag(text: string): number {
  const timeMs = timePattern.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(timeMs))
    throw new InvalidArgumentError(
      'Give a date, a time and a zone, for example 2026-12-27T08:00Z or 2026-12-27T09:00+01:00.',
    );
  return timeMs;
}

/** A bundle, channel or group name. @returns the text. @throws an error of commander for any other text */
export function nameFlag(text: string): string {
  if (!isName(text)) {
    throw new InvalidArgumentError(
      'A name has up to 64 characters of a-z 0-9 . _ - and begins with a letter or digit.',
    );
  }
  return text;
}

/** @returns a parser for whole numbers from min to max, both included. It throws an error of commander for any other text */
export function numberFlag(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) {
      throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`);
    }
    return value;
  };
}

/** The serial of a release that a publisher may sign. */
export const newSerialFlag: (text: string) => number = numberFlag(1, maxSerial);

/** The serial of a release that a repository or a host may have. */
export const serialFlag: (text: string) => number = numberFlag(1, maxReadSerial);

/** @returns a parser for percentages up to max, as `50%`; the value of the flag is the number */
export function percentFlag(max: number): (text: string) => number {
  return (text) => {
    const percent = parsePercent(text);
    if (percent === undefined || percent > max)
      throw new InvalidArgumentError(`Give a whole percentage from 0% to ${max}%, for example 50%.`);
    return percent;
  };
}

const maxRepeated = 100;

/**
 * For flags that may be given several times.
 * @param parse of one value
 * @returns a parser that appends to the values before; at most 100 are taken
 */
export function repeatedFlag<T>(parse: (text: string) => T): (text: string, before?: readonly T[]) => T[] {
  return (text, before = []) => {
    if (before.length === maxRepeated) throw new InvalidArgumentError(`At most ${maxRepeated} at once.`);
    return [...before, parse(text)];
  };
}

/** As repeatedFlag, for texts that are judged later: paths, patterns, names. */
export const repeatedText: (text: string, before?: readonly string[]) => string[] = repeatedFlag(
  (text) => text,
);
