// Which cells a run plays: those that were named, all, or those of CI with a share of the others that the digest of the
// commit chooses, so that each comes in its turn. Pure.
import { createHash } from 'node:crypto';

export interface Wanted {
  readonly cells: readonly string[];
  /** `all` is also what makes the page. */
  readonly scope: 'all' | 'named' | 'share';
}

/** Each commit plays so large a part of what CI leaves out. */
const shareOf = 12;

/**
 * @param names all cells, as `bind:good`
 * @param given arguments: `--all`, or names of cells, daemons (`bind`) or cases (`:good`)
 * @param commit digest that turns the share
 */
export function choose(
  names: readonly string[],
  { given, always, commit }: { given: readonly string[]; always: readonly string[]; commit: string },
): Wanted {
  if (given.includes('--all')) return { cells: names, scope: 'all' };
  const wanted = given.filter((one) => !one.startsWith('--'));
  if (wanted.length > 0) {
    const unknown = wanted.filter((one) => !names.some((name) => fits(name, one)));
    if (unknown.length > 0) throw new Error(`there is no cell ${unknown.join(' ')}`);
    return { cells: names.filter((name) => wanted.some((one) => fits(name, one))), scope: 'named' };
  }
  const cells = names.filter((name) => always.includes(caseOf(name)) || isInShare(name, commit));
  return { cells, scope: 'share' };
}

function fits(name: string, given: string): boolean {
  return name === given || name.startsWith(`${given}:`) || (given.startsWith(':') && name.endsWith(given));
}

function caseOf(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

function isInShare(name: string, commit: string): boolean {
  const digest = createHash('sha256').update(`${commit} ${name}`).digest();
  return digest.readUInt32BE(0) % shareOf === 0;
}
