// Which generations are whole, read in full and each once in a start, and where the way back leads when the one
// before the swap is not. Reads only; what may be trusted is rollback-target's to say.

import { isWritError, type WritError } from '../../core/errors.js';
import { findDamage } from '../generations/damage.js';
import { damagedTree } from '../generations/damage-error.js';
import { bundlesOf } from '../generations/generation-contents.js';
import { listGenerations, readGeneration } from '../generations/generations.js';
import { chooseTarget } from '../generations/rollback-target.js';
import type { Host } from '../state/host.js';
import type { Journal, WayBack } from '../state/recovery-rules.js';

export interface WholeCheck {
  /** @returns why this generation is not whole (STATE_DAMAGED); undefined for one that is */
  damageOf(generation: number): Promise<WritError | undefined>;
}

/** @returns a check that remembers: a start asks about one generation more than once */
export function createWholeCheck(host: Host): WholeCheck {
  const known = new Map<number, WritError | undefined>();
  return {
    damageOf: async (generation) => {
      if (!known.has(generation)) known.set(generation, await readInFull(host, generation));
      return known.get(generation);
    },
  };
}

async function readInFull(host: Host, number: number): Promise<WritError | undefined> {
  try {
    const generation = readGeneration(host.paths, number);
    const bundles = bundlesOf(host.paths, generation);
    const [damage] = await findDamage(host, { generation, bundles });
    return damage && damagedTree(number, damage);
  } catch (error) {
    if (isWritError(error) && error.code === 'STATE_DAMAGED') return error;
    throw error;
  }
}

/**
 * Where an undo puts the link: the generation before the swap when it is whole, else the last known good one, else the
 * newest that is whole and that a rollback could go to, else the one that the swap brought.
 */
export async function findWayBack(host: Host, journal: Journal, whole: WholeCheck): Promise<WayBack> {
  if (journal.from === undefined) return 'nothing';
  const isWhole = async (one: number): Promise<boolean> => (await whole.damageOf(one)) === undefined;
  if (await isWhole(journal.from)) return journal.from;
  for (const number of othersOf(host, journal)) {
    if ((await isWhole(number)) && (await isSuitable(host, number))) return number;
  }
  return (await isWhole(journal.to)) ? journal.to : 'lost';
}

function othersOf(host: Host, { from, to }: Journal): number[] {
  const { lastKnownGood, previous } = host.ledger.read();
  const all = listGenerations(host.paths).reverse();
  const first = [lastKnownGood, previous].filter((one) => one !== undefined && all.includes(one));
  const ordered = [...new Set([...(first as number[]), ...all])];
  return ordered.filter((one) => one !== from && one !== to);
}

/** Vouched for by the keys of today, and not withdrawn: as for any rollback that nobody insists on. */
async function isSuitable(host: Host, generation: number): Promise<boolean> {
  try {
    await chooseTarget(host, undefined, { generation, force: 'no' });
    return true;
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.warn({ err: error, generation }, 'no way back leads to this generation');
    return false;
  }
}
