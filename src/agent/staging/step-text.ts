// The lines that steps say to people. Pure text from selections.
import { sizeText } from '../../core/size-text.js';
import { type Selection, taken } from '../select/selection.js';
import type { FetchedReleases } from './fetch-and-stage.js';
import { bytesOfWay } from './ways.js';

export function selectText(selections: readonly Selection[]): string {
  return selections.map(selectLine).join(', ');
}

function selectLine(selection: Selection): string {
  const { bundle, channel, fromSerial, toSerial, revision, problem } = selection.result;
  const from = fromSerial ?? 'none';
  if (selection.kind === 'take')
    return `${bundle} ${channel} ${from} -> ${toSerial}${revision ? ` (${oneLine(revision)})` : ''}`;
  return `${bundle} ${channel} ${from} stays${problem ? ` [${problem.code}]` : ''}`;
}

/** @returns as `17.0 MB`, `188 B (access by difference from 7)`, or `6.0 MB (access goes on from byte 11000000)` */
export function fetchedText({
  selections,
  fetched,
  resumedFrom,
}: Pick<FetchedReleases, 'selections' | 'fetched' | 'resumedFrom'>): string {
  const fromByte = (name: string): number => resumedFrom.get(name) ?? 0;
  const got = taken(selections).flatMap(({ bundle, target }) => {
    const way = fetched.get(bundle.name)?.way;
    return way === undefined ? [] : [{ bundle, way, bytes: bytesOfWay(way, target) - fromByte(bundle.name) }];
  });
  const notes = got.flatMap(({ bundle, way }) => {
    if (way.kind === 'kept') return [`${bundle.name} from what is kept`];
    return [
      ...(way.kind === 'difference' ? [`${bundle.name} by delta from ${way.fromSerial}`] : []),
      ...(fromByte(bundle.name) > 0 ? [`${bundle.name} continues from byte ${fromByte(bundle.name)}`] : []),
    ];
  });
  const size = sizeText(got.reduce((sum, { bytes }) => sum + bytes, 0));
  return notes.length === 0 ? size : `${size} (${notes.join(', ')})`;
}

/** A line of its own in the notes of a step would look like a word of ours. */
function oneLine(text: string): string {
  return text.replaceAll('\n', '\\u{a}');
}

/** @returns as `1 file`, `122 files` */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** The selections before a step, and what it made of them. */
export interface StepChange {
  readonly before: readonly Selection[];
  readonly after: readonly Selection[];
}

/** Fails when one of the bundles has failed in this step: what an earlier step has said is no news. */
export function stepVerdict(change: StepChange): 'ok' | 'fail' | 'skip' {
  if (failures(change).length > 0) return 'fail';
  return change.after.some((one) => one.kind === 'take') ? 'ok' : 'skip';
}

/** @returns what went wrong with the bundles that failed in this step, or the text for when none did */
export function failuresOr(change: StepChange, text: string): string {
  const lines = failures(change).map((one) => `${one.bundle.name}: ${one.result.problem?.message}`);
  return lines.length > 0 ? lines.join('; ') : text;
}

function failures({ before, after }: StepChange): readonly Selection[] {
  const taken = before.filter((one) => one.kind === 'take').map((one) => one.bundle.name);
  return after.filter(
    ({ kind, bundle, result }) =>
      kind === 'keep' &&
      taken.includes(bundle.name) &&
      result.problem !== undefined &&
      result.outcome !== 'unchanged',
  );
}
