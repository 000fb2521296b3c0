// Which cells a run plays: those that were named, all, or those of CI with a share of the others that the digest of the
// commit chooses, so that each comes in its turn. Pure.
import { createHash } from 'node:crypto';

export interface Wanted {
  readonly cells: readonly string[];
  /** Whether what comes of them is written to the page. */
  readonly record: 'yes' | 'no';
}

/** Each commit plays so large a part of what CI leaves out. */
const shareOf = 12;

export interface ChooseOptions {
  /** `--all` or `--whole`, or names of cells, daemons (`bind`) or cases (`:good`), and `--record`. */
  readonly given: readonly string[];
  /** Cases of every run. */
  readonly always: readonly string[];
  /** Digest that turns the share. */
  readonly commit: string;
}

/**
 * @param names all cells, as `bind:good`
 * @throws Error for a name that nothing has
 */
export function choose(names: readonly string[], { given, always, commit }: ChooseOptions): Wanted {
  if (given.includes('--all')) return { cells: names, record: 'yes' };
  if (given.includes('--whole')) return { cells: names, record: 'no' };
  const wanted = given.filter((one) => !one.startsWith('--'));
  if (wanted.length > 0) {
    const unknown = wanted.filter((one) => !names.some((name) => fits(name, one)));
    if (unknown.length > 0) throw new Error(`there is no cell ${unknown.join(' ')}`);
    const cells = names.filter((name) => wanted.some((one) => fits(name, one)));
    return { cells, record: given.includes('--record') ? 'yes' : 'no' };
  }
  const isTurn = (name: string): boolean => turnOf(name, commit) % shareOf === 0;
  const cells = names.filter((name) => always.includes(caseOf(name)) || isTurn(name));
  return { cells, record: 'no' };
}

function fits(name: string, given: string): boolean {
  return name === given || name.startsWith(`${given}:`) || (given.startsWith(':') && name.endsWith(given));
}

/** @param name of a cell, as `bind:good` */
export function caseOf(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

function turnOf(name: string, commit: string): number {
  return createHash('sha256').update(`${commit} ${name}`).digest().readUInt32BE(0);
}
