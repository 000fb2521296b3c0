// The flags that bound the change of a channel's head, for `writ publish` and `writ promote`, and the text of a change in
// the output of both. The comparison itself is in publisher/release.
import { given } from '../../core/given.js';
import {
  type ChangeExcess,
  defaultMaxRemovedPercent,
  type TreeChange,
} from '../../core/release/change-rules.js';
import { sizeText } from '../../core/size-text.js';
import type { ChangedLines } from '../../publisher/release/changed-lines.js';
import type { BoundedChange } from '../../publisher/release/head-change.js';
import type { Reporter } from '../console/command.js';
import { percentFlag } from '../console/flag-values.js';
import { type FlagValues, optional, preset, toggle } from '../console/flags.js';
import { counted } from '../show/show-text.js';

export const changeBoundFlags = {
  acceptChange: toggle('--accept-change', 'go on although the change exceeds its bounds, and show which'),
  maxRemoved: preset(
    '--max-removed <percent>',
    'share of the files, and of the bytes, of the head of the channel that may go',
    defaultMaxRemovedPercent,
    percentFlag(100),
    `${defaultMaxRemovedPercent}%`,
  ),
  maxGrowth: optional(
    '--max-growth <percent>',
    'share by which files and bytes may grow, as 100% for twice as much; default: any',
    percentFlag(1_000_000),
  ),
};

type ChangeBoundFlags = FlagValues<typeof changeBoundFlags>;

export const changeBoundExitCode =
  '3  the change exceeds its bounds (CHANGE_TOO_LARGE); nothing was signed or published';

/**
 * @returns the bounds of a change, in percent; undefined ones are those of the channel. With --accept-change the
 * bounds only warn.
 */
export function changeBoundsOf({ acceptChange, maxRemoved, maxGrowth }: ChangeBoundFlags): BoundedChange {
  return {
    maxRemovedPercent: maxRemoved,
    maxGrowthPercent: maxGrowth,
    beyond: acceptChange === true ? 'accept' : 'refuse',
  };
}

/** The facts about a change of a channel. */
export interface ShownChange {
  /** The serial of the channel's head; absent for its first release. */
  readonly previousSerial?: number | undefined;
  /** Absent where an archive could not be read. */
  readonly change?: TreeChange | undefined;
  readonly accepted: readonly ChangeExcess[];
  /** The serial of the release before the corrected one, where only the change to that release is within the bounds. */
  readonly withinBoundsOf?: number | undefined;
  readonly lines?: ChangedLines | undefined;
}

/** @returns lines for people about the change of a release; none for a first release */
export function changeLines({
  previousSerial,
  change,
  accepted,
  withinBoundsOf,
  lines,
}: ShownChange): string[] {
  if (previousSerial === undefined || change === undefined) return [];
  const { before, after, difference } = change;
  const { added, removed, changed } = difference;
  const files = `${added.length} added, ${removed.length} removed, ${changed.length} changed`;
  const count =
    before.files === after.files ? counted(after.files, 'file') : `${before.files} -> ${after.files} files`;
  const bytes = `${sizeText(before.bytes)} -> ${sizeText(after.bytes)}`;
  return [
    `  compared with ${previousSerial}: ${count} (${files}), ${bytes}${linesText(lines)}`,
    ...(withinBoundsOf === undefined
      ? []
      : [`  within the bounds of ${withinBoundsOf}, the release before the fault`]),
    ...accepted.map(
      ({ actual, expected }) => `  accepted with --accept-change: ${actual}; bound: ${expected}`,
    ),
  ];
}

function linesText(lines: ChangedLines | undefined): string {
  if (lines === undefined) return '';
  const { added, removed, files, notCounted } = lines;
  const rest = notCounted === 0 ? '' : ` (${counted(notCounted, 'file')} not counted)`;
  return files === 0 && rest === '' ? '' : `, lines +${added} -${removed}${rest}`;
}

/** Warns where the bounds could not be applied. */
export function warnOfUnknownChange({ previousSerial, change }: ShownChange, reporter: Reporter): void {
  if (previousSerial === undefined || change !== undefined) return;
  reporter.warn(
    `an archive is missing or damaged: what changes since serial ${previousSerial} is unknown, and no bound was applied`,
  );
}

/** @returns the member `change` for --json; null for a first release, and where the change is unknown */
export function changeDetails({
  previousSerial,
  change,
  accepted,
  withinBoundsOf,
  lines,
}: ShownChange): Record<string, unknown> {
  if (previousSerial === undefined || change === undefined) return { change: null };
  const { before, after, difference, emptied } = change;
  const { added, removed, changed } = difference;
  return {
    change: {
      previousSerial,
      files: {
        ...{ before: before.files, after: after.files },
        ...{ added: added.length, removed: removed.length, changed: changed.length, emptied: emptied.length },
      },
      bytes: { before: before.bytes, after: after.bytes },
      ...given({ lines, withinBoundsOf }),
      accepted,
    },
  };
}
