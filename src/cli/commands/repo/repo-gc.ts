// `writ repo gc`: lists the files that may be removed, and removes them after a confirmation or with --yes.
import { sizeText } from '../../../core/size-text.js';
import { createDurableFs } from '../../../platform/disk/durable-fs.js';
import {
  type Collectable,
  planCollection,
  removeCollected,
} from '../../../publisher/upkeep/collect-repository.js';
import type { Answer, CommandDefinition } from '../../console/command.js';
import { durationFlag, numberFlag } from '../../console/flag-values.js';
import { type FlagValues, preset, toggle } from '../../console/flags.js';
import { askYes } from '../../console/questions.js';
import { lockWait, lockWaitFlag, repositoryFlag } from '../../repository/repository-flags.js';
import { counted } from '../../show/show-text.js';

const flags = {
  repository: repositoryFlag,
  keep: preset(
    '--keep <n>',
    'newest versions of each role to keep, with everything they list',
    10,
    numberFlag(1, 100_000),
  ),
  grace: preset(
    '--grace <duration>',
    'keep what was listed within this time',
    86_400_000,
    durationFlag,
    '1d',
  ),
  lockWait: lockWaitFlag,
  dryRun: toggle('--dry-run', 'show what would be removed, and remove nothing'),
  yes: toggle('-y, --yes', 'remove without asking'),
};
type RepoGcFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<RepoGcFlags> = {
  examples: ['writ repo gc --repository repo --dry-run', 'writ repo gc --repository repo --keep 20 --yes'],
  exitCodes: [
    '0  removed, nothing to remove, or not removed because you answered no',
    '1  the repository does not verify, or a disk failure',
    '2  usage',
    '7  another process writes the repository',
  ],
  flags,
  acts: () => true,
  run: async (_args, flags, context) => {
    const { repository, keep, grace: graceMs } = flags;
    const options = { repository: context.at(repository), keep, graceMs, clock: context.clock };
    const planned = planCollection(options);
    if (planned.length === 0 || flags.dryRun) return answer(planned, flags, 'would');
    if (!flags.yes) for (const line of shown(planned)) context.reporter.note(line);
    const sum = `${counted(planned.length, 'file')}, ${sizeText(bytesOf(planned))}`;
    if (!(await askYes(`Remove ${sum}?`, flags, context))) return answer(planned, flags, 'no');
    const durableFs = createDurableFs();
    const removing = { ...options, durableFs, ...lockWait(flags, context) };
    return answer(await removeCollected(planned, removing), flags, 'done');
  },
};

const maxShown = 50;

function shown(files: readonly Collectable[]): string[] {
  const lines = files.slice(0, maxShown).map(({ path, bytes }) => `  ${path}  ${sizeText(bytes)}`);
  return files.length <= maxShown
    ? lines
    : [...lines, `  (${files.length - maxShown} more; --json lists all)`];
}

function bytesOf(files: readonly Collectable[]): number {
  return files.reduce((total, { bytes }) => total + bytes, 0);
}

function answer(files: readonly Collectable[], flags: RepoGcFlags, verdict: 'would' | 'no' | 'done'): Answer {
  const { repository, keep } = flags;
  const bytes = bytesOf(files);
  const changed = verdict === 'done' && files.length > 0;
  const base = {
    ...(verdict === 'would' && flags.dryRun ? { type: 'repo-gc.preview' } : {}),
    details: { repository, keep, changed, files, bytes },
  };
  if (files.length === 0)
    return { ...base, outcome: 'nothing-to-remove', lines: [`NOTHING TO REMOVE in ${repository}`] };
  const sum = `${counted(files.length, 'file')}, ${sizeText(bytes)}`;
  if (verdict === 'done')
    return { ...base, outcome: 'removed', lines: [`REMOVED ${sum} from ${repository}`] };
  const end = 'Nothing was removed';
  if (verdict === 'no') return { ...base, outcome: 'left-alone', lines: [`NOT CHANGED ${sum}`, end] };
  return {
    ...base,
    outcome: 'would-remove',
    lines: [`WOULD REMOVE ${sum} from ${repository}`, ...shown(files), end],
  };
}
