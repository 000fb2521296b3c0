// Selects the cells of a run: the named ones, all, or those of CI with a share of the others that the digest of the commit
// selects, so that each runs in turn. Pure.
import { createHash } from 'node:crypto';

export interface CellSelection {
  readonly cells: readonly string[];
  /** Whether the results are written to the page. */
  readonly shouldRecord: boolean;
}

/** Each commit runs one of this number of parts of the cells that CI omits. */
const shareOf = 12;

export interface ChooseOptions {
  /** `--all`, `--whole`, or names of cells, daemons (`bind`) or cases (`:good`), and `--record`. */
  readonly given: readonly string[];
  /** Cases of every run. */
  readonly always: readonly string[];
  /** The digest that selects the share. */
  readonly commit: string;
}

/**
 * @param names of all cells, such as `bind:good`
 * @throws Error for an unknown name
 */
export function choose(names: readonly string[], { given, always, commit }: ChooseOptions): CellSelection {
  if (given.includes('--all')) return { cells: names, shouldRecord: true };
  if (given.includes('--whole')) return { cells: names, shouldRecord: false };
  const wanted = given.filter((one) => !one.startsWith('--'));
  if (wanted.length > 0) {
    const unknown = wanted.filter((one) => !names.some((name) => fits(name, one)));
    if (unknown.length > 0) throw new Error(`there is no cell ${unknown.join(' ')}`);
    const cells = names.filter((name) => wanted.some((one) => fits(name, one)));
    return { cells, shouldRecord: given.includes('--record') };
  }
  const isTurn = (name: string): boolean => turnOf(name, commit) % shareOf === 0;
  const cells = names.filter((name) => always.includes(caseOf(name)) || isTurn(name));
  return { cells, shouldRecord: false };
}

function fits(name: string, given: string): boolean {
  return name === given || name.startsWith(`${given}:`) || (given.startsWith(':') && name.endsWith(given));
}

/** @param name of a cell, such as `bind:good` */
export function caseOf(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

function turnOf(name: string, commit: string): number {
  return createHash('sha256').update(`${commit} ${name}`).digest().readUInt32BE(0);
}
