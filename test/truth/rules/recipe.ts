// Reads a page of docs/daemons: the part of agent.yaml and the daemon's own lines that it tells people to write. What is
// tried is what stands there, with only its places exchanged. Pure.

export interface Recipe {
  /** The first block of YAML: `bundles` and `workers`. */
  readonly agent: string;
  /** The first block of the daemon's own configuration; empty where it needs none. */
  readonly own: string;
}

/** What stands on the page, and what it is here: paths, addresses, ports. */
export type Places = readonly (readonly [onPage: string, here: string])[];

export function readRecipe(page: string): Recipe {
  const agent = blockOf(page, 'yaml');
  if (agent === undefined) throw new Error('the page has no block of yaml');
  return { agent, own: blockOf(page, 'conf') ?? '' };
}

function blockOf(page: string, language: string): string | undefined {
  return new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(page)?.[1];
}

/**
 * @returns the recipe with each place exchanged, the longest first
 * @throws Error for a place that is not on the page: the page and its test have drifted apart
 */
export function placed({ agent, own }: Recipe, places: Places): Recipe {
  const missing = places.filter(([onPage]) => !agent.includes(onPage) && !own.includes(onPage));
  if (missing.length > 0) throw new Error(`not on the page: ${missing.map(([one]) => one).join(', ')}`);
  const longestFirst = [...places].sort(([a], [b]) => b.length - a.length);
  if (longestFirst.length === 0) return { agent, own };
  const any = new RegExp(
    longestFirst.map(([one]) => one.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'),
    'g',
  );
  const here = new Map(longestFirst);
  const exchange = (text: string): string => text.replace(any, (found) => here.get(found) ?? found);
  return { agent: exchange(agent), own: exchange(own) };
}
