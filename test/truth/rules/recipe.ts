// Reads a page of docs/daemons: the part of agent.yaml and the daemon's own configuration. The cells use exactly these texts,
// with only paths, addresses and ports replaced. Pure.

import { parseDocument } from 'yaml';
import { durationMs } from '../../../src/core/names.js';

export interface Recipe {
  /** The first YAML block: `bundles` and `workers`. */
  readonly agent: string;
  /** The first block of the daemon's own configuration, or its program; empty when it needs none. */
  readonly own: string;
}

/** Texts of the page and their local replacements: paths, addresses, ports. */
export type Places = readonly (readonly [onPage: string, here: string])[];

export function readRecipe(page: string): Recipe {
  const agent = blockOf(page, 'yaml');
  if (agent === undefined) throw new Error('the page has no block of yaml');
  return { agent, own: blockOf(page, 'conf') ?? blockOf(page, 'js') ?? '' };
}

/** How a group's probe repairs a change that another program made to its worker. */
export interface Repeat {
  /** The interval of its probe; 0 without one. */
  readonly everyMs: number;
  /** False when the group cannot be notified, so that only another release repairs it. */
  readonly canRestore: boolean;
}

/** @param agent of a recipe, with one worker group */
export function readRepeat(agent: string): Repeat {
  const own = parseDocument(agent).toJS() as { workers: { probe?: { every?: string }; reset?: object }[] };
  const [group] = own.workers;
  const every = group?.probe?.every;
  return {
    everyMs: every === undefined ? 0 : durationMs(every),
    canRestore: group?.reset !== undefined,
  };
}

function blockOf(page: string, language: string): string | undefined {
  return new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(page)?.[1];
}

/**
 * @returns the recipe with each text replaced, the longest first
 * @throws Error for a text that is not on the page, because the page and its test have diverged
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
