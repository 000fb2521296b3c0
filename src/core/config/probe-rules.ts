// Rules for the stamp placeholders of a probe, and which of them need a bundle. The agent replaces them by their values.
import { asGroup, asList, at, type ConfigPath, type Finding, type Group } from './findings.js';

/** Matches `{serial}` and `{source}`, with or without `:BUNDLE`; capture groups: the name, and the bundle. */
export const stampPlaceholder = '\\{(serial|source)(?::([^{}]*))?\\}';

/** @returns findings for placeholders with an ambiguous or unknown bundle */
export function* stampRules(worker: Group, uses: readonly string[], path: ConfigPath): Generator<Finding> {
  for (const [index, argument] of asList(asGroup(worker['probe'])['run']).entries()) {
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
