// Shared parts of the commands that propose a root: their flags, and the steps from a change to the mailed file, its code
// and the required signers.
import { type TopLevelRole, topLevelRoles } from '../../core/tuf/tuf-metadata.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import { proposalCode } from '../../publisher/root/proposal-file.js';
import { proposeRoot, writeNewProposal } from '../../publisher/root/propose-root.js';
import { noChange, type RootChange } from '../../publisher/root/root-change.js';
import type { Answer, CommandContext, CommandDefinition } from '../console/command.js';
import { durationFlag } from '../console/flag-values.js';
import { type FlagTable, type FlagValues, optional, required, toggle } from '../console/flags.js';
import { describeProposal, differenceLines, needText, proposalDetails } from '../show/show-proposal.js';
import { shellQuote } from '../show/show-repository.js';

const validityFlag = (role: TopLevelRole) =>
  optional(`--${role}-life <duration>`, `another time from signing ${role} to its expiry`, durationFlag);

const proposeFlags = {
  repository: required('--repository <dir>', 'the repository, or a copy of it'),
  keys: optional('--keys <dir>', 'directory with your copy of the root, root.json'),
  out: optional('-o, --out <file>', 'where to write the proposal; default: root-N.proposal'),
  yes: toggle('-y, --yes', 'accept a dangerous change; the danger is shown'),
  dryRun: toggle('--dry-run', 'show what would be proposed, and write nothing'),
  rootLife: validityFlag('root'),
  timestampLife: validityFlag('timestamp'),
  snapshotLife: validityFlag('snapshot'),
  targetsLife: validityFlag('targets'),
};
type ProposeFlags = FlagValues<typeof proposeFlags>;

type Change = Partial<Omit<RootChange, 'validity'>>;

/** The own part of a command: its examples, arguments and flags, and the change that they request. */
interface ProposeCommand<Own> extends Pick<CommandDefinition, 'examples' | 'args'> {
  readonly flags: FlagTable<Own>;
  change(args: readonly (string | undefined)[], flags: Own, context: CommandContext): Change;
}

/**
 * @param own the examples, arguments and flags of the command, and the change of the root that they request
 * @returns the command that proposes a root with this change
 */
export function proposeCommand<Own extends object>(
  own: ProposeCommand<Own>,
): CommandDefinition<Own & ProposeFlags> {
  return {
    ...own,
    exitCodes: [
      '0  the proposal is written',
      '1  the repository does not verify, a key cannot be read, disk failure; nothing is written',
      '2  usage, or the change would be a mistake',
    ],
    flags: { ...own.flags, ...proposeFlags } as FlagTable<Own & ProposeFlags>,
    acts: () => true,
    run: async (args, flags, context) => propose(own.change(args, flags, context), flags, context),
  };
}

function propose(change: Change, flags: ProposeFlags, context: CommandContext): Answer {
  const { at, clock, command } = context;
  const trusted = proposeRoot({
    repository: at(flags.repository),
    change: { ...noChange, ...change, validity: readValidityFlags(flags) },
    danger: flags.yes ? 'accepted' : 'refused',
    clock,
    keysDirectory: at(flags.keys),
  });
  const path = flags.out ?? `root-${trusted.proposal.root.signed.version}.proposal`;
  const { difference, dangers, tallies } = describeProposal(trusted);
  const title = `root v${difference.version.before} -> v${difference.version.after}`;
  const lines = [
    ...differenceLines(difference),
    ...dangers.map((danger) => `  DANGER ${danger}`),
    `  ${needText(tallies)}`,
  ];
  const details = { ...proposalDetails(difference, tallies), dangers };
  if (flags.dryRun) {
    const type = `${command.replace(' ', '-')}.preview`;
    const block = [`WOULD PROPOSE ${title}`, ...lines, 'Nothing was written'];
    return { type, outcome: 'would-propose', details, lines: block };
  }
  writeNewProposal(at(path), trusted.proposal, createDurableFs());
  const code = proposalCode(trusted.proposal);
  return {
    outcome: 'proposed',
    details: { ...details, proposal: path, code },
    lines: [
      `PROPOSED ${title}`,
      ...lines,
      `Wrote ${path} (no secrets). Code ${code}: compare it with the others by voice.`,
    ],
    next: `writ sign ${shellQuote(path)} --key KEY   (each signer, on their own machine)`,
  };
}

function readValidityFlags(flags: ProposeFlags): RootChange['validity'] {
  const flagsByRole = topLevelRoles.map((role) => [role, flags[`${role}Life`]] as const);
  return Object.fromEntries(flagsByRole.filter(([, validityMs]) => validityMs !== undefined));
}
