// The lines that steps say to people. Pure text from selections.
import type { Selection } from './select-releases.js';

export function selectText(selections: readonly Selection[]): string {
  return selections.map(selectLine).join(', ');
}

function selectLine(selection: Selection): string {
  const { bundle, channel, fromSerial, toSerial, revision, problem } = selection.result;
  const from = fromSerial ?? 'none';
  if (selection.kind === 'take')
    return `${bundle} ${channel} ${from} -> ${toSerial}${revision ? ` (${revision})` : ''}`;
  return `${bundle} ${channel} ${from} stays${problem ? ` [${problem.code}]` : ''}`;
}

/** @returns the words for an amount of bytes, as `1.2 MB` */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Fails when one of the bundles has just failed; a remembered refusal is no news. */
export function stepVerdict(selections: readonly Selection[]): 'ok' | 'fail' | 'skip' {
  const failed = selections.some(
    (one) => one.result.outcome !== 'unchanged' && one.result.remembered !== true,
  );
  if (failed) return 'fail';
  return selections.some((one) => one.kind === 'take') ? 'ok' : 'skip';
}

/** @returns what went wrong with the bundles that failed, or the text for when none did */
export function failuresOr(selections: readonly Selection[], text: string): string {
  const lines = selections
    .filter(
      (one) => one.kind === 'keep' && one.result.problem !== undefined && one.result.outcome !== 'unchanged',
    )
    .map((one) => `${one.bundle.name}: ${one.result.problem?.message}`);
  return lines.length > 0 ? lines.join('; ') : text;
}
