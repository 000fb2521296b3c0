// Flags that all commands for a repository share. Commands without a signature use them too, so this file does not load
// publisher code.
import type { LockWait } from '../../publisher/repository/repository-writer.js';
import type { CommandContext } from '../console/command.js';
import { durationFlag } from '../console/flag-values.js';
import { optional, preset, required, toggle } from '../console/flags.js';
import { roughly } from '../show/show-text.js';

export const repositoryFlag = required('--repository <dir>', 'the repository that `writ init` made');

export const lockWaitFlag = preset(
  '--lock-wait <duration>',
  'how long to wait for another writer',
  10_000,
  durationFlag,
  '10s',
);

/** @returns the options for waiting for another writer, which is named in a note */
export function lockWait(
  { lockWait: lockWaitMs }: { readonly lockWait: number },
  { reporter }: Pick<CommandContext, 'reporter'>,
): LockWait {
  const onLockWait: LockWait['onLockWait'] = ({ text, sinceMs }) => {
    const since = sinceMs === undefined ? '' : ` since ${new Date(sinceMs).toISOString()}`;
    reporter.note(
      `waiting up to ${roughly(lockWaitMs)} for ${text}, which is writing the repository${since}`,
    );
  };
  return { lockWaitMs, onLockWait };
}

export const clockFlag = toggle(
  '--clock-is-right',
  'sign also where the kernel says that nobody keeps its clock right, and record that',
);

/** For commands that verify and do not sign. */
export const ownRootFlag = optional(
  '--keys <dir>',
  "directory with the publisher's copy of the root, to verify from",
);
