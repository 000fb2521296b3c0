// What drivers fill into the texts of a user: {current}, {generation}, {worker}. Never leaves one unfilled, which
// the program or daemon might even accept, and never fills in a name that could be more than a name.
import { WritError } from '../../core/errors.js';
import type { Target } from '../contract/driver.js';

const placeholder = /\{[a-z]+\}/g;
const known: readonly string[] = ['{current}', '{generation}', '{worker}'];

/** Neither a path nor an option, a line, a URL's query or an escape: what a worker may be called in a text. */
export const workerNamePattern = '^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$';

export function isWorkerName(name: string): boolean {
  return new RegExp(workerNamePattern).test(name);
}

/**
 * @param key where the texts stand in the configuration, as `reset.run`
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

export function usesWorkerName(texts: readonly string[]): boolean {
  return texts.some((text) => text.includes('{worker}'));
}

/** @param worker a name that isWorkerName holds for, where the text has {worker} */
export function fillPlaceholders(text: string, target: Target, worker: string): string {
  // Functions, or `$&` in a path would be taken for a pattern of the replacement.
  return text
    .replaceAll('{current}', () => target.path)
    .replaceAll('{generation}', () => String(target.generation))
    .replaceAll('{worker}', () => worker);
}
