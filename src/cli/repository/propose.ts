// What the commands that propose a root have in common: their flags, and from a change to the file that is mailed,
// its code and the people to sign it.
import type { Command } from 'commander';
import { Option } from 'commander';
import { type TopLevelRole, topLevelRoles } from '../../core/tuf/tuf-metadata.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import { proposalCode } from '../../publisher/root/proposal-file.js';
import { proposeRoot, writeNewProposal } from '../../publisher/root/propose-root.js';
import { noChange, type RootChange } from '../../publisher/root/root-change.js';
import type { Answer, CommandContext, CommandDefinition } from '../console/command.js';
import { durationFlag } from '../console/flag-values.js';
import { describeProposal, differenceLines, needText, proposalDetails } from '../show/show-proposal.js';
import { shellWord } from '../show/show-repository.js';

/** As --timestamp-life: milliseconds from signing to expiry. */
export type LifeFlags = { readonly [Role in TopLevelRole as `${Role}Life`]?: number };

export interface ProposeFlags extends LifeFlags {
  readonly repository: string;
  readonly keys?: string;
  readonly out?: string;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

/** Adds --repository, --keys, --out, --yes, --dry-run and a --ROLE-life for each role. */
function addProposeFlags(command: Command): void {
  command
    .requiredOption('--repository <dir>', 'the repository, or a copy of it')
    .option('--keys <dir>', 'directory with your copy of the root, root.json')
    .option('-o, --out <file>', 'where to write the proposal; root-N.proposal by default')
    .option('-y, --yes', 'accept what is dangerous; the danger is said')
    .option('--dry-run', 'say what would be proposed, and write nothing');
  for (const role of topLevelRoles) {
    const life = new Option(`--${role}-life <duration>`, `another time from signing ${role} to its expiry`);
    command.addOption(life.argParser(durationFlag));
  }
}

/** What is a command's own: its examples, arguments and flags, and the change that they ask for. */
export interface ProposeCommand<Flags>
  extends Pick<CommandDefinition<Flags & object>, 'examples' | 'configure'> {
  change(
    args: readonly (string | undefined)[],
    flags: Flags,
    context: CommandContext,
  ): Partial<Omit<RootChange, 'lives'>>;
}

/** @returns the command that proposes a root with this change */
export function proposeCommand<Flags extends ProposeFlags>(
  own: ProposeCommand<Flags>,
): CommandDefinition<Flags> {
  return {
    examples: own.examples,
    exitCodes: [
      '0  the proposal is written',
      '1  the repository does not verify, a key cannot be read, disk failure; nothing is written',
      '2  usage, or the change would be a mistake',
    ],
    configure: (command) => {
      own.configure(command);
      addProposeFlags(command);
    },
    run: async (args, flags, context) => propose(own.change(args, flags, context), flags, context),
  };
}

function propose(
  change: Partial<Omit<RootChange, 'lives'>>,
  flags: ProposeFlags,
  context: CommandContext,
): Answer {
  const { at, clock, command } = context;
  const trusted = proposeRoot({
    repository: at(flags.repository),
    change: { ...noChange, ...change, lives: livesOf(flags) },
    danger: flags.yes ? 'accepted' : 'refused',
    clock,
    ...(flags.keys === undefined ? {} : { keysDirectory: at(flags.keys) }),
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
      `Wrote ${path} (no secrets). Code ${code}: tell it to the others by voice.`,
    ],
    next: `writ sign ${shellWord(path)} --key KEY   (each signer, on their own machine)`,
  };
}

function livesOf(flags: LifeFlags): RootChange['lives'] {
  const lives = topLevelRoles.map((role) => [role, flags[`${role}Life`]] as const);
  return Object.fromEntries(lives.filter(([, lifeMs]) => lifeMs !== undefined));
}
