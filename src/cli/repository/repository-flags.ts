// Flags that commands for a repository share, also those that sign nothing: no code of the publisher comes with them.
import { durationFlag } from '../console/flag-values.js';
import { optional, preset, required, toggle } from '../console/flags.js';

export const repositoryFlag = required('--repository <dir>', 'the repository that `writ init` made');

export const lockWaitFlag = preset(
  '--lock-wait <duration>',
  'how long to wait for another writer',
  10_000,
  durationFlag,
  '10s',
);

export const clockFlag = toggle(
  '--clock-is-right',
  'sign also where the kernel says that nobody keeps its clock right, and record that',
);

/** For commands that verify and sign nothing. */
export const ownRootFlag = optional(
  '--keys <dir>',
  "directory with the publisher's copy of the root, to verify from",
);
