// Replaces {current}, {generation} and {worker} in configured texts. Refuses unknown placeholders, which a program or daemon might even
// accept, and names that could have a meaning beyond a name.
import { WritError } from '../../core/errors.js';
import type { Target } from '../contract/driver.js';

const placeholder = /\{[a-z]+\}/g;
const known: readonly string[] = ['{current}', '{generation}', '{worker}'];

/** Names of workers in texts: a name must not become a path, an option, a line, the query of a URL, or an escape. */
export const workerNamePattern = '^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$';

/** @returns whether the name is safe in texts: it cannot become a path, an option, a line or a query of a URL */
export function isWorkerName(name: string): boolean {
  return new RegExp(workerNamePattern).test(name);
}

/**
 * @param key of the texts in the configuration, as `reset.run`
 * @throws WritError CONFIG_INVALID
 */
export function requireKnownPlaceholders(key: string, texts: readonly string[]): void {
  const unknown = texts
    .flatMap((text) => text.match(placeholder) ?? [])
    .filter((one) => !known.includes(one));
  if (unknown.length === 0) return;
  throw new WritError('CONFIG_INVALID', `${key}: unknown placeholder ${unknown.join(', ')}`, {
    facts: { expected: known.join(' '), actual: unknown.join(' ') },
  });
}

/** @returns whether a text contains {worker}, so that it differs for each worker */
export function usesWorkerName(texts: readonly string[]): boolean {
  return texts.some((text) => text.includes('{worker}'));
}

/**
 * @param worker a name that isWorkerName accepts, if the text has {worker}
 * @returns the text with every {current} replaced by the path of the target, {generation} by its number and {worker} by the
 *   name. Other text stays, unknown placeholders too; nothing is escaped. Throws nothing. Example: `{worker}:{generation}` with
 *   web and 3 is `web:3`
 */
export function fillPlaceholders(text: string, target: Target, worker: string): string {
  // Replace by functions, because `$&` in a path would be a pattern of the replacement.
  return text
    .replaceAll('{current}', () => target.path)
    .replaceAll('{generation}', () => String(target.generation))
    .replaceAll('{worker}', () => worker);
}
