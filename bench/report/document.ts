// Writes the figures into docs/performance.md, between its markers, with the command and the machine. Pure.
import type { Machine } from '../measure/machine.js';
import { bytes } from './format.js';

export interface Section {
  /** As in `<!-- bench:NAME -->`. */
  readonly name: string;
  readonly text: string;
}

/** @throws Error when the document has no such place: text of people is never overwritten */
export function putSection(document: string, { name, text }: Section): string {
  const [begin, end] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`];
  const [from, to] = [document.indexOf(begin), document.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the document has no ${begin} with ${end} after it`);
  return `${document.slice(0, from + begin.length)}\n${text.trim()}\n${document.slice(to)}`;
}

export interface Measurement {
  readonly command: string;
  readonly tree: string;
  readonly rounds: number;
  readonly machine: Machine;
  /** Epoch milliseconds. */
  readonly atMs: number;
}

/** The facts that a reader needs to verify the figures and to repeat the run. */
export function describe({ command, tree, rounds, machine, atMs }: Measurement): string {
  const { cores, memoryBytes, kernel, node, load } = machine;
  const busy =
    load <= 0.5 * cores
      ? []
      : [
          `Load before it began: ${load.toFixed(1)}; others worked beside it: times are rough, counts are exact.`,
        ];
  return [
    `\`${command}\`, ${new Date(atMs).toISOString().slice(0, 10)}: ${tree}, ${rounds} rounds, ${cores} cores,`,
    `${bytes(memoryBytes)} of memory, Linux ${kernel}, Node ${node}, loopback.`,
    ...busy,
  ].join('\n');
}
