// Reads a page of docs/daemons: the part of agent.yaml and the daemon's own lines that it tells people to write. What is
// tried is what stands there, with only its places exchanged. Pure.

import { parseDocument } from 'yaml';
import { durationMs } from '../../../src/core/names.js';

export interface Recipe {
  /** The first block of YAML: `bundles` and `workers`. */
  readonly agent: string;
  /** The first block of the daemon's own configuration, or its program; empty where it needs none. */
  readonly own: string;
}

/** What stands on the page, and what it is here: paths, addresses, ports. */
export type Places = readonly (readonly [onPage: string, here: string])[];

export function readRecipe(page: string): Recipe {
  const agent = blockOf(page, 'yaml');
  if (agent === undefined) throw new Error('the page has no block of yaml');
  return { agent, own: blockOf(page, 'conf') ?? blockOf(page, 'js') ?? '' };
}

/** What becomes of somebody else's change of what its worker uses. */
export interface Repeat {
  /** So often its probe runs again; 0: it is not, or there is none. */
  readonly everyMs: number;
  /** `no`: it cannot be notified, so that only another release mends it. */
  readonly restores: 'yes' | 'no';
}

/** @param agent of a recipe, with one group of workers */
export function readRepeat(agent: string): Repeat {
  const own = parseDocument(agent).toJS() as { workers: { probe?: { every?: string }; reset?: object }[] };
  const [group] = own.workers;
  const every = group?.probe?.every;
  return {
    everyMs: every === undefined ? 0 : durationMs(every),
    restores: group?.reset === undefined ? 'no' : 'yes',
  };
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
