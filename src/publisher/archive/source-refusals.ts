// The refusals of SOURCE, up to a bound in one error: links, names, secrets. Defines that error. Its code is CONTENT_SECRET
// if at least one refusal is a secret.
import { WritError } from '../../core/errors.js';
import { printable } from '../../core/text/printable.js';
import type { FoundSecret } from './secret-content.js';
import { ignoreFile } from './source-rules.js';

export const maxListedRefusals = 20;

export interface Refusal {
  readonly text: string;
  /** Present where the content is a secret, or the name shows one. */
  readonly secret?: { readonly path: string; readonly line?: number; readonly what: string };
}

/**
 * @param path relative to SOURCE
 * @returns the refusal with the line and the kind of the secret, never its value
 */
export function secretRefusal(path: string, { line, what, isOwn }: FoundSecret): Refusal {
  const help = isOwn
    ? 'move it out of SOURCE; --include does not permit it'
    : `exclude the file with --exclude or ${ignoreFile}, or give --include`;
  return { text: `${path}:${line} contains ${what}: ${help}`, secret: { path, line, what } };
}

/** The number of refusals in the message; the facts contain more. */
const maxNamed = 5;

/** @returns CONTENT_SECRET where one of the refusals is a secret, else SOURCE_REFUSED */
export function refusedSource(source: string, found: readonly Refusal[]): WritError {
  // A line break in a name would make one refusal appear as two.
  const refusals = found.map(({ text }) => printable(text));
  const secrets = found.flatMap(({ secret }) => secret ?? []);
  const more = refusals.length > maxNamed ? ` (and ${refusals.length - maxNamed} more)` : '';
  const named = refusals.slice(0, maxNamed).join('\n  ');
  const message = `${printable(source)}: ${named}${more}`;
  if (secrets.length === 0) return new WritError('SOURCE_REFUSED', message, { facts: { source, refusals } });
  return new WritError('CONTENT_SECRET', message, { facts: { source, refusals, secrets } });
}

/**
 * @param what what exceeds its bound, as `files`; `expected` is the bound
 * @returns the error SOURCE_REFUSED
 */
export function tooMuch(what: string, expected: number, actual: number): WritError {
  return new WritError('SOURCE_REFUSED', `SOURCE has too many ${what}`, { facts: { expected, actual } });
}
