// The texts of the steps select, fetch and stage, for operators.
import { sizeText } from '../../core/size-text.js';
import { type Selection, taken } from '../select/selection.js';
import type { FetchedReleases } from './fetch-and-stage.js';
import { countBytesToFetch } from './fetch-strategy.js';

/**
 * @returns as `access prod 6 -> 7 (v1.2), dns prod 3 stays [CHECK_FAILED]`: each bundle with its old and new serial, or
 * its error code
 */
export function formatSelections(selections: readonly Selection[]): string {
  return selections.map(formatSelection).join(', ');
}

function formatSelection(selection: Selection): string {
  const { bundle, channel, fromSerial, toSerial, revision, problem } = selection.result;
  const from = fromSerial ?? 'none';
  if (selection.kind === 'take')
    return `${bundle} ${channel} ${from} -> ${toSerial}${revision ? ` (${escapeLineBreaks(revision)})` : ''}`;
  return `${bundle} ${channel} ${from} stays${problem ? ` [${problem.code}]` : ''}`;
}

/** @returns as `17.0 MB`, `188 B (access by difference from 7)`, or `6.0 MB (access goes on from byte 11000000)` */
export function formatFetched({
  selections,
  fetched,
  resumedFrom,
}: Pick<FetchedReleases, 'selections' | 'fetched' | 'resumedFrom'>): string {
  const fromByte = (name: string): number => resumedFrom.get(name) ?? 0;
  const releases = taken(selections).flatMap(({ bundle, target }) => {
    const strategy = fetched.get(bundle.name)?.strategy;
    return strategy === undefined
      ? []
      : [{ bundle, strategy, bytes: countBytesToFetch(strategy, target) - fromByte(bundle.name) }];
  });
  const notes = releases.flatMap(({ bundle, strategy }) => {
    if (strategy.kind === 'retained') return [`${bundle.name} from what is kept`];
    return [
      ...(strategy.kind === 'delta' ? [`${bundle.name} by delta from ${strategy.fromSerial}`] : []),
      ...(fromByte(bundle.name) > 0 ? [`${bundle.name} continues from byte ${fromByte(bundle.name)}`] : []),
    ];
  });
  const size = sizeText(releases.reduce((sum, { bytes }) => sum + bytes, 0));
  return notes.length === 0 ? size : `${size} (${notes.join(', ')})`;
}

/** Escapes line breaks, because a line of a foreign text could imitate a text of Writ. */
function escapeLineBreaks(text: string): string {
  return text.replaceAll('\n', '\\u{a}');
}

/** @returns as `1 file`, `122 files` */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** The selections before and after a step. */
export interface StepChange {
  readonly before: readonly Selection[];
  readonly after: readonly Selection[];
}

/** @returns `fail` if a bundle failed in this step, `skip` if no bundle is left, otherwise `ok`. Failures of earlier steps do not count. */
export function judgeStep(change: StepChange): 'ok' | 'fail' | 'skip' {
  if (listFailures(change).length > 0) return 'fail';
  return change.after.some((one) => one.kind === 'take') ? 'ok' : 'skip';
}

/** @returns the messages of the bundles that failed in this step; `text` if none failed */
export function formatFailures(change: StepChange, text: string): string {
  const lines = listFailures(change).map((one) => `${one.bundle.name}: ${one.result.problem?.message}`);
  return lines.length > 0 ? lines.join('; ') : text;
}

function listFailures({ before, after }: StepChange): readonly Selection[] {
  const taken = before.filter((one) => one.kind === 'take').map((one) => one.bundle.name);
  return after.filter(
    ({ kind, bundle, result }) =>
      kind === 'keep' &&
      taken.includes(bundle.name) &&
      result.problem !== undefined &&
      result.outcome !== 'unchanged',
  );
}
