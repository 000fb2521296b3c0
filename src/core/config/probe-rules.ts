// Rules for what a probe may be told: which placeholders it has, and which of them need a bundle. Owns their form; what stands
// in their place is the agent's.
import { at, type ConfigPath, type Finding, type Group, group, list } from './findings.js';

/** `{serial}` and `{source}`, alone or of a named bundle; groups: which, and the bundle. */
export const stampPlaceholder = '\\{(serial|source)(?::([^{}]*))?\\}';

const known: ReadonlySet<string> = new Set(['candidate', 'current', 'bundle', 'scratch', 'worker']);

/** @returns what would never be filled in, or from a bundle that nobody knows */
export function* stampRules(worker: Group, uses: readonly string[], path: ConfigPath): Generator<Finding> {
  for (const [index, argument] of list(group(worker['probe'])['run']).entries()) {
    if (typeof argument !== 'string') continue;
    for (const [whole, what, bundle] of argument.matchAll(new RegExp(stampPlaceholder, 'g'))) {
      const place = [...path, 'probe', 'run', index];
      if (bundle === undefined && uses.length > 1)
        yield at(place, `${whole} needs a bundle, as {${what}:${uses[0]}}: \`uses\` has several`);
      if (bundle !== undefined && !uses.includes(bundle))
        yield at(place, `${whole} names a bundle that is not in \`uses\``);
    }
  }
}

/** A file that was accepted before must start: what may be a word of another language is a warning. */
export function* unknownPlaceholders(run: readonly string[], path: ConfigPath): Generator<Finding> {
  for (const [index, argument] of run.entries()) {
    for (const [whole, word = ''] of argument.matchAll(/(?<!\$)\{([a-z]+)\}/g)) {
      if (known.has(word) || new RegExp(stampPlaceholder).test(whole)) continue;
      const text = `${whole} is no placeholder of a probe, and is handed on as it is`;
      yield { path: [...path, index], at: 'value', text };
    }
  }
}
