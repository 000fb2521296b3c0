// Rules for what a probe may be told: which placeholders it has, and which of them need a bundle. Owns their form; what stands
// in their place is the agent's.
import { at, type ConfigPath, type Finding, type Group, group, list } from './findings.js';

/** `{serial}` and `{source}`, alone or of a named bundle; groups: which, and the bundle. */
export const stampPlaceholder = '\\{(serial|source)(?::([^{}]*))?\\}';

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
