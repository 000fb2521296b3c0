// What is refused of SOURCE, with every reason at once, to a bound: links, names, secrets. Owns the error that names them; the code
// is CONTENT_SECRET as soon as one of them is a secret.
import { WritError } from '../../core/errors.js';
import { printable } from '../../core/text/printable.js';
import type { FoundSecret } from './secret-content.js';
import { ignoreFile } from './source-rules.js';

export const maxRefusalsSaid = 20;

export interface Refusal {
  readonly text: string;
  /** Of what is refused because it is a secret, or is named as one. */
  readonly secret?: { readonly path: string; readonly line?: number; readonly what: string };
}

export function secretRefusal(path: string, { line, what, isOwn }: FoundSecret): Refusal {
  const help = isOwn
    ? 'move it out of SOURCE; --include does not permit it'
    : `exclude the file with --exclude or ${ignoreFile}, or give --include`;
  return { text: `${path}:${line} contains ${what}: ${help}`, secret: { path, line, what } };
}

/** In the message; the facts have more. */
const maxNamed = 5;

/** @returns SOURCE_REFUSED, or CONTENT_SECRET where a secret is among what was found */
export function refusedSource(source: string, found: readonly Refusal[]): WritError {
  // A name with a line break would make two lines of one refusal.
  const refusals = found.map(({ text }) => printable(text));
  const secrets = found.flatMap(({ secret }) => secret ?? []);
  const more = refusals.length > maxNamed ? ` (and ${refusals.length - maxNamed} more)` : '';
  const named = refusals.slice(0, maxNamed).join('\n  ');
  const message = `${printable(source)}: ${named}${more}`;
  if (secrets.length === 0) return new WritError('SOURCE_REFUSED', message, { facts: { source, refusals } });
  return new WritError('CONTENT_SECRET', message, { facts: { source, refusals, secrets } });
}

export function tooMuch(what: string, expected: number, actual: number): WritError {
  return new WritError('SOURCE_REFUSED', `SOURCE has too many ${what}`, { facts: { expected, actual } });
}
