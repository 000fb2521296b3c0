// `writ repo log`: the publications, withdrawals, promotions and signatures in the metadata that a repository still has.
import {
  type LogEntry,
  type RepositoryLog,
  readRepositoryLog,
} from '../../../publisher/upkeep/repository-log.js';
import type { Answer, CommandDefinition } from '../../console/command.js';
import { nameFlag, numberFlag } from '../../console/flag-values.js';
import { type FlagValues, optional, preset } from '../../console/flags.js';
import { ownRootFlag, repositoryFlag } from '../../repository/repository-flags.js';
import { showRepositoryLog } from '../../show/show-repository-log.js';

const flags = {
  repository: repositoryFlag,
  keys: ownRootFlag,
  bundle: optional('--bundle <name>', 'only acts on this bundle', nameFlag),
  channel: optional('--channel <name>', 'only acts on this channel', nameFlag),
  limit: preset('-n, --limit <n>', 'acts to show', 50, numberFlag(1, 10_000)),
};
type RepoLogFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<RepoLogFlags> = {
  examples: [
    'writ repo log --repository repo',
    'writ repo log --repository repo --keys keys --bundle dns-edge --channel stable',
    'writ repo log --repository repo -n 500 --json',
  ],
  exitCodes: [
    '0  listed; where a part is missing, the log names where it begins',
    '1  a version does not verify: it is named, and left out of the log',
    '2  usage',
  ],
  flags,
  run: (_args, flags, { clock, at }) => {
    const log = readRepositoryLog({ repository: at(flags.repository), keysDirectory: at(flags.keys), clock });
    return Promise.resolve(answer(log, flags));
  },
};

function answer(log: RepositoryLog, flags: RepoLogFlags): Answer {
  const wanted = log.entries.filter((entry) => isWanted(entry, flags));
  const entries = wanted.slice(0, flags.limit);
  const more = wanted.length - entries.length;
  const shown = { ...log, entries };
  const hasProblems = log.problems.length > 0;
  return {
    outcome: hasProblems ? 'damaged' : entries.length === 0 ? 'empty' : 'found',
    ...(hasProblems ? { exitCode: 1 } : {}),
    details: {
      repository: flags.repository,
      entries: entries.map(entryDetails),
      more,
      beginnings: log.beginnings,
      missing: log.missing,
      online: log.online.map(({ firstSignedAtMs, lastSignedAtMs, ...one }) => ({
        ...one,
        firstSignedAt: isoOrNull(firstSignedAtMs),
        lastSignedAt: isoOrNull(lastSignedAtMs),
      })),
      problems: log.problems,
    },
    lines: showRepositoryLog(shown, { more, repository: flags.repository }),
  };
}

/** A filter matches only releases, because roots and delegations have no bundle. */
function isWanted({ act }: LogEntry, { bundle, channel }: RepoLogFlags): boolean {
  if (bundle === undefined && channel === undefined) return true;
  if (!('bundle' in act)) return false;
  return (bundle ?? act.bundle) === act.bundle && (channel ?? act.channel) === act.channel;
}

function entryDetails(entry: LogEntry): object {
  const { role, version, since, signedAtMs, signers, waiting, neverLive, act } = entry;
  return {
    ...act,
    role,
    version,
    comparedWith: since ?? (version > 1 ? version - 1 : null),
    signedAt: isoOrNull(signedAtMs),
    signers,
    waiting: waiting === true,
    neverLive: neverLive === true,
  };
}

function isoOrNull(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString();
}
