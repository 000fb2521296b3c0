// `writ root commit`: makes a proposal with enough signatures the root of the repository, and signs the roles of its new
// keys in the same step.
import { WritError } from '../../../core/errors.js';
import type { DelegatedRole, TargetsSigned } from '../../../core/tuf/tuf-metadata.js';
import { createDurableFs } from '../../../platform/disk/durable-fs.js';
import { askClockSync } from '../../../platform/process/clock-sync.js';
import type { KeyDirectory } from '../../../publisher/keys/key-directory.js';
import { shortKeyId } from '../../../publisher/keys/signer-names.js';
import { ignoredDetails } from '../../../publisher/repository/ignored-file.js';
import { listNewReleases } from '../../../publisher/repository/listing.js';
import { parseReleases } from '../../../publisher/repository/metadata-content.js';
import { findPassedOver } from '../../../publisher/repository/passed-over.js';
import { type CommitPlan, planCommit } from '../../../publisher/root/commit-plan.js';
import { type CommitResult, commitRoot, requireCommittable } from '../../../publisher/root/commit-root.js';
import {
  mergeProposals,
  type Proposal,
  proposalCode,
  readProposal,
} from '../../../publisher/root/proposal-file.js';
import { compareRoots } from '../../../publisher/root/root-difference.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { repeatedText } from '../../console/flag-values.js';
import { type FlagValues, optional, toggle } from '../../console/flags.js';
import { confirmCode } from '../../console/questions.js';
import { acceptMissingFlag, warnOfPassedOver } from '../../repository/change-flags.js';
import { passphraseFlags, passphrasesFor } from '../../repository/passphrase.js';
import { clockFlag, lockWait, lockWaitFlag, repositoryFlag } from '../../repository/repository-flags.js';
import { teamKeysOf } from '../../repository/role-keys.js';
import { externalCommands, signerFlags } from '../../repository/signer-flags.js';
import { differenceLines, missingText, proposalDetails, tallyText } from '../../show/show-proposal.js';
import {
  leftOutLines,
  releaseDetails,
  releaseLines,
  releaseText,
  shellQuote,
} from '../../show/show-repository.js';

const maxReleasesShown = 50;
const includeHint =
  '  A waiting file of a replaced key is left out too: --include-waiting signs its releases again.';

const flags = {
  repository: repositoryFlag,
  keys: optional('--keys <dir>', 'directory with your copy of the root, and new keys of changed roles'),
  confirm: optional('--confirm <code>', 'the code, as compared by voice'),
  leaveUnsigned: toggle(
    '--leave-unsigned',
    'commit although new keys are missing: hosts accept nothing new until they have signed',
  ),
  includeWaiting: toggle('--include-waiting', 'sign waiting targets too, although their keys are replaced'),
  acceptMissing: acceptMissingFlag,
  teamKey: optional(
    '--team-key <role=file>',
    'where a targets key is removed: the public key of a team (or its whole key id), as the team gave it; may be repeated',
    repeatedText,
  ),
  dryRun: toggle('--dry-run', 'show what would happen, and write nothing'),
  lockWait: lockWaitFlag,
  clockIsRight: clockFlag,
  ...passphraseFlags,
  ...signerFlags,
};
type CommitFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<CommitFlags> = {
  examples: [
    'writ root commit root-2.proposal --repository repo --keys keys',
    'writ root commit from-ben.proposal from-carol.proposal --repository repo --keys keys --confirm CODE',
  ],
  exitCodes: [
    '0  committed, or already committed and complete',
    '1  signatures or new keys are missing, the code differs, the repository does not verify; nothing is written',
    '2  usage, or the change would be a mistake; the keys of a team are not confirmed',
    '7  another process writes the repository',
  ],
  args: [['<files...>', 'the signed proposal, or copies of it that people signed side by side']],
  flags,
  acts: () => true,
  run: async (args, flags, context) => {
    // commander passes the files of a variadic argument as one list.
    const [first = '', ...others] = args.flat() as string[];
    const read = (file: string): Proposal => readProposal(context.at(file));
    const proposal = mergeProposals([read(first), ...others.map(read)]);
    const { clock } = context;
    const keys = keysOf(flags, context);
    const repository = context.at(flags.repository);
    const teamKeys = teamKeysOf(flags.teamKey ?? [], context);
    const shouldIncludeWaiting = flags.includeWaiting;
    const missingFiles = flags.acceptMissing ? ('accepted' as const) : ('refused' as const);
    const own = { shouldIncludeWaiting, teamKeys, missingFiles };
    const options = { proposal, repository, clock, keys, ...own };
    const unsignedRoles = flags.leaveUnsigned ? ('accepted' as const) : ('refused' as const);
    const plan = planCommit(options);
    if (flags.dryRun) return preview(plan, flags);
    requireCommittable(plan, unsignedRoles);
    // With --confirm there is no question, and the result has these lines.
    if (flags.confirm === undefined) for (const line of planLines(plan, flags)) context.reporter.note(line);
    await confirmCode(proposalCode(proposal), flags, context);
    const durableFs = createDurableFs();
    const result = await commitRoot({
      ...options,
      unsignedRoles,
      durableFs,
      ...lockWait(flags, context),
      clockCheck: { ask: () => askClockSync(), stated: flags.clockIsRight },
    });
    warnOfPassedOver(findPassedOver(plan.state), context.reporter);
    return answer(result, flags, first);
  },
};

function keysOf(flags: CommitFlags, context: CommandContext): KeyDirectory | undefined {
  if (flags.keys === undefined) {
    if (flags.signer === undefined) return undefined;
    throw new WritError('USAGE', '--signer needs --keys, the directory with your copy of the root');
  }
  const external = externalCommands(flags, context, (role) => role !== 'root');
  return { path: context.at(flags.keys), passphrases: passphrasesFor(flags, context), external };
}

function planLines(plan: CommitPlan, { repository }: CommitFlags): string[] {
  const { base, root, toSign, missing, state } = plan;
  const signs = toSign.filter((role) => !missing.includes(role));
  return [
    ...differenceLines(compareRoots(base.signed, root.signed)),
    verifiedLine(plan),
    ...(signs.length > 0 ? [`  new keys sign ${signs.join(', ')}`] : []),
    // Print the releases, because a thief of the old key may have added one: the publisher must check this list.
    ...(signs.includes('targets') ? releaseTexts(state.targets.signed) : []),
    ...plan.unconfirmedTeams.map(
      ({ role }) => `  the keys of ${role} are not confirmed: --team-key ${role}=FILE`,
    ),
    ...(signs.includes('snapshot') ? releaseLines('publishes', listNewReleases(state)) : []),
    ...leftOutLines(state.ignored, repository),
    ...(state.ignored.length > 0 ? [includeHint] : []),
    ...(missing.length > 0
      ? [
          `  hosts refuse the repository until ${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} signed`,
        ]
      : []),
  ];
}

function verifiedLine({ base, tallies }: CommitPlan): string {
  return `  ${tallyText(tallies)}, verified from root v${base.signed.version} and from scratch`;
}

function releaseTexts(targets: TargetsSigned): string[] {
  const releases = parseReleases(targets);
  const shown = releases.slice(0, maxReleasesShown).map(({ release }) => `    ${releaseText(release)}`);
  const more = releases.length - shown.length;
  return [
    ...shown,
    ...(more > 0 ? [`    and ${more} more; see writ repo status`] : []),
    ...(targets.delegations?.roles ?? []).map(delegationText),
  ];
}

/** With key ids, because a thief may have replaced the key of a team by another one of the same name. */
function delegationText({ name, paths = [], threshold, keyids }: DelegatedRole): string {
  const keys = keyids.map(shortKeyId).join(', ');
  return `    delegates ${paths.join(' ')} to ${name}, signed by ${threshold} of ${keys}`;
}

function detailsOf(plan: CommitPlan): Record<string, unknown> {
  const { base, root, tallies, toSign, missing, state } = plan;
  return {
    ...proposalDetails(compareRoots(base.signed, root.signed), tallies),
    toSign,
    missingKeys: missing,
    unconfirmedTeams: plan.unconfirmedTeams.map(({ role }) => role),
    newReleases: toSign.includes('snapshot') ? releaseDetails(listNewReleases(state)) : [],
    ...ignoredDetails(state.ignored),
  };
}

function preview(plan: CommitPlan, flags: CommitFlags): Answer {
  const version = plan.root.signed.version;
  const missing = missingText(plan.tallies);
  return {
    type: 'root-commit.preview',
    outcome: plan.written ? 'committed-before' : 'would-commit',
    details: { changed: false, ...detailsOf(plan) },
    lines: [
      missing === ''
        ? `WOULD COMMIT root v${version}`
        : `NOT COMPLETE root v${version}: signatures are missing`,
      ...planLines(plan, flags),
      ...(missing === '' ? [] : [`  still needed: ${missing}`]),
      'Nothing was written',
    ],
  };
}

const labels = { committed: 'COMMITTED', completed: 'COMPLETED', unchanged: 'NOTHING NEW' } as const;

function answer(result: CommitResult, flags: CommitFlags, file: string): Answer {
  const { kind, plan, signed, waiting, expired } = result;
  const { version } = plan.root.signed;
  const gone = compareRoots(plan.base.signed, plan.root.signed).roles.flatMap(({ role, removed }) =>
    removed.map(({ name }) => (role === 'root' ? name : `${role} (${name})`)),
  );
  const signedTexts = Object.entries(signed).map(([role, number]) => `${role} v${number}`);
  const hosts =
    waiting.length === 0 ? 'Hosts follow at their next poll.' : 'Hosts refuse the current metadata.';
  return {
    outcome: kind,
    details: { changed: kind !== 'unchanged', ...detailsOf(plan), signed, waiting, expired: expired ?? null },
    lines: [
      `${labels[kind]} root v${version}. ${hosts}`,
      ...(flags.confirm === undefined ? [verifiedLine(plan)] : planLines(plan, flags)),
      ...(signedTexts.length > 0 ? [`  signed by the new keys: ${signedTexts.join(', ')}`] : []),
      ...(waiting.length > 0 ? [`  not signed yet: ${waiting.join(', ')}`] : []),
      ...(expired === undefined
        ? []
        : [`  ${expired} has expired: hosts accept nothing new until it is signed`]),
      ...(gone.length > 0 ? [`Destroy all copies of the old keys: ${gone.join(', ')}.`] : []),
    ],
    next: nextOf(result, flags, file),
  };
}

/** @returns the command, with the keys that it needs, before hosts accept the repository again; undefined for none */
function nextOf({ waiting, expired }: CommitResult, flags: CommitFlags, file: string): string | undefined {
  const repository = `--repository ${shellQuote(flags.repository)} --keys DIR`;
  const isTargets = waiting.includes('targets') || expired === 'targets';
  if (waiting.includes('targets')) {
    return `writ root commit ${shellQuote(file)} ${repository}   (with the new keys of ${waiting.join(', ')}, or --signer)`;
  }
  if (waiting.length === 0 && (expired === undefined || isTargets)) return undefined;
  return `writ refresh ${repository}   (with the keys of snapshot and timestamp; or start the server with them)`;
}
