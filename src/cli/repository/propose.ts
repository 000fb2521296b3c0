// What the commands that propose a root have in common: their flags, and from a change to the file that is mailed,
// its code and the people to sign it.
import type { Command } from 'commander';
import { Option } from 'commander';
import { topLevelRoles } from '../../core/tuf/tuf-metadata.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import { proposalCode } from '../../publisher/root/proposal-file.js';
import { type TrustedProposal, tallySignatures } from '../../publisher/root/proposal-signatures.js';
import { proposeRoot, writeNewProposal } from '../../publisher/root/propose-root.js';
import type { RootChange } from '../../publisher/root/root-change.js';
import { compareRoots } from '../../publisher/root/root-difference.js';
import { judgeRoot } from '../../publisher/root/root-rules.js';
import type { Answer, CommandContext } from '../console/command.js';
import { durationFlag } from '../console/flag-values.js';
import { differenceLines, needText, proposalDetails } from '../show/show-proposal.js';
import { shellWord } from '../show/show-repository.js';

export interface ProposeFlags {
  readonly repository: string;
  readonly keys?: string;
  readonly out?: string;
  readonly rootLife?: number;
  readonly targetsLife?: number;
  readonly snapshotLife?: number;
  readonly timestampLife?: number;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

export const proposeExitCodes = [
  '0  the proposal is written',
  '1  the repository does not verify, a key cannot be read, disk failure; nothing is written',
  '2  usage, or the change would be a mistake',
];

/** Adds --repository, --keys, --out, --yes, --dry-run and a --ROLE-life for each role. */
export function addProposeFlags(command: Command): void {
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

/** @param name of the command, as `root-rotate` */
export function propose(
  name: string,
  change: Omit<RootChange, 'lives'>,
  flags: ProposeFlags,
  context: CommandContext,
): Answer {
  const trusted = proposeRoot({
    repository: context.at(flags.repository),
    change: { ...change, lives: livesOf(flags) },
    danger: flags.yes ? 'accepted' : 'refused',
    clock: context.clock,
    ...(flags.keys === undefined ? {} : { keysDirectory: context.at(flags.keys) }),
  });
  const path = flags.out ?? `root-${trusted.proposal.root.signed.version}.proposal`;
  if (!flags.dryRun) writeNewProposal(context.at(path), trusted.proposal, createDurableFs());
  return answer({ name, path, trusted, dryRun: flags.dryRun === true });
}

function livesOf({ rootLife, targetsLife, snapshotLife, timestampLife }: ProposeFlags): RootChange['lives'] {
  return {
    ...(rootLife === undefined ? {} : { root: rootLife }),
    ...(targetsLife === undefined ? {} : { targets: targetsLife }),
    ...(snapshotLife === undefined ? {} : { snapshot: snapshotLife }),
    ...(timestampLife === undefined ? {} : { timestamp: timestampLife }),
  };
}

interface Proposed {
  readonly name: string;
  readonly path: string;
  readonly trusted: TrustedProposal;
  readonly dryRun: boolean;
}

function answer({ name, path, trusted, dryRun }: Proposed): Answer {
  const { base, proposal } = trusted;
  const difference = compareRoots(base.signed, proposal.root.signed);
  const { dangers } = judgeRoot(base.signed, proposal.root.signed);
  const tallies = tallySignatures(trusted);
  const { before, after } = difference.version;
  const lines = [
    ...differenceLines(difference),
    ...dangers.map((danger) => `  DANGER ${danger}`),
    `  ${needText(tallies)}`,
  ];
  const details = { ...proposalDetails(difference, tallies), dangers };
  if (dryRun) {
    const first = `WOULD PROPOSE root v${before} -> v${after}`;
    const block = [first, ...lines, 'Nothing was written'];
    return { type: `${name}.preview`, outcome: 'would-propose', exitCode: 0, details, lines: block };
  }
  const code = proposalCode(proposal);
  return {
    type: `${name}.result`,
    outcome: 'proposed',
    exitCode: 0,
    details: { ...details, proposal: path, code },
    lines: [
      `PROPOSED root v${before} -> v${after}`,
      ...lines,
      `Wrote ${path} (no secrets). Code ${code}: tell it to the others by voice.`,
    ],
    next: `writ sign ${shellWord(path)} --key KEY   (each signer, on their own machine)`,
  };
}
