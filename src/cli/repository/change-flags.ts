// Shared parts of the commands that change a repository's targets: their flags, the options built from them, and the output
// about signed and waiting files.

import { given } from '../../core/given.js';
import { maxDeltas } from '../../core/release/deltas.js';
import { timeLeft } from '../../core/text/iso-time.js';
import { isOnlineRole, type OnlineRole } from '../../core/tuf/tuf-metadata.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import { askClockSync } from '../../platform/process/clock-sync.js';
import { defaultDeltas } from '../../publisher/release/moved-deltas.js';
import { ignoredDetails } from '../../publisher/repository/ignored-file.js';
import type { PassedOver } from '../../publisher/repository/passed-over.js';
import type { SignedRole } from '../../publisher/signing/online-signing.js';
import type { ChangeOptions, ChangeResult, SignedChange } from '../../publisher/signing/sign-change.js';
import type { Answer, CommandContext, Reporter } from '../console/command.js';
import { numberFlag } from '../console/flag-values.js';
import { type FlagValues, preset, required, toggle } from '../console/flags.js';
import { leftOutLines, releaseDetails, releaseLines, shellQuote } from '../show/show-repository.js';
import { passphraseFlags, passphrasesFor } from './passphrase.js';
import { clockFlag, lockWait, lockWaitFlag, repositoryFlag } from './repository-flags.js';
import { externalCommands, signerFlags } from './signer-flags.js';

export const changeFlags = {
  repository: repositoryFlag,
  keys: required('--keys <dir>', 'directory with the keys'),
  lockWait: lockWaitFlag,
  clockIsRight: clockFlag,
  ...passphraseFlags,
  ...signerFlags,
};

/**
 * After a root with new online keys. A lost file must be restored instead, because its releases and serials would be
 * forgotten.
 */
export const acceptMissingFlag = toggle(
  '--accept-missing',
  'with new online keys: use the newest files that exist in place of published ones that never existed',
);

/** For commands that make a release the head of a channel. */
export const deltasFlag = preset(
  '--deltas <n>',
  'number of earlier releases of the channel to make deltas from; 0 for none',
  defaultDeltas,
  numberFlag(0, maxDeltas),
);

export type ChangeFlags = FlagValues<typeof changeFlags>;

/**
 * Creates the options of a change of a repository from the flags. Opens no key and writes nothing.
 * @param holder the name of this command in the lock, as `withdraw`
 * @param serves true for the roles that a signer without a role may sign. By default not the online roles, so that a person's
 *   device does not sign what the server signs
 * @returns the options, with absolute paths (relative ones begin at the working directory). `keys.external` has one command for
 *   each --signer, in their order; empty without the flag
 */
export function changeOptions(
  flags: ChangeFlags,
  context: CommandContext,
  holder: string,
  serves: (role: string) => boolean = (role) => !isOnlineRole(role),
) {
  const { clock, reporter, at } = context;
  const external = externalCommands(flags, context, serves);
  return {
    repository: at(flags.repository),
    keys: { path: at(flags.keys), passphrases: passphrasesFor(flags, context), external },
    holder,
    clock,
    durableFs: createDurableFs(),
    ...lockWait(flags, context),
    report: reporter,
    clockCheck: { ask: () => askClockSync(), stated: flags.clockIsRight },
  } satisfies ChangeOptions;
}

export const changeExitCodes: readonly string[] = [
  '1  keys missing or not opened, the repository does not verify, disk failure; nothing was published',
  '2  usage, or hosts would refuse it',
  '7  another process writes the repository',
];

/** Finishes the step `sign`, and `verify` where the change was published. */
export function reportSigned(
  result: ChangeResult<{ readonly signed: readonly SignedRole[] }>,
  reporter: Reporter,
): void {
  if (result.kind === 'nothing-new') return;
  warnOfClock(result, reporter);
  const own = result.signed.map(({ role, version }) => `${role} v${version}`);
  if (result.kind === 'waiting') {
    reporter.finish('sign', `${own.join(', ')}; no keys for ${result.missing.join(', ')}`);
    return;
  }
  const { versions } = result;
  const online = [`snapshot v${versions.snapshot}`, `timestamp v${versions.timestamp}`];
  reporter.finish('sign', [...own, ...online].join(', '));
  reporter.finish('verify', 'with our own client, from the first root');
}

const maxPassedOver = 20;

/** Lists the files that `--accept-missing` leaves out, because one of them may be lost and not merely nonexistent. */
export function warnOfPassedOver(passedOver: PassedOver | undefined, reporter: Reporter): void {
  if (passedOver === undefined) return;
  const { version, missing } = passedOver;
  reporter.warn(`snapshot v${version} lists missing files: the newest snapshot with existing files was used`);
  for (const name of missing.slice(0, maxPassedOver))
    reporter.warn(`${name} is missing: its releases are unknown, and are left out`);
  if (missing.length > maxPassedOver) reporter.warn(`and ${missing.length - maxPassedOver} more files`);
}

/** Warns of a clock that is behind the newest signature. This is not a failure, because this clock may be the correct one. */
export function warnOfClock(
  { signedAheadMs }: { readonly signedAheadMs?: number | undefined },
  reporter: Reporter,
): void {
  if (signedAheadMs === undefined) return;
  const far = timeLeft(signedAheadMs);
  reporter.warn(
    `this clock is ${far} behind the newest signature: the time of that signature was used (writ repo status)`,
  );
}

/** @returns as `; hosts see it when snapshot and timestamp are signed` */
export function waitingText(missing: readonly OnlineRole[]): string {
  return `; hosts see it when ${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} signed`;
}

/** The texts of a change. `outcome` is its name when it was published. */
export interface ChangeTexts {
  readonly outcome: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** Follows the outcome in capitals, or SIGNED. */
  readonly what: string;
  readonly lines?: readonly string[];
  /** `lines` already contains the new releases and the files that are left out. */
  readonly listsNewReleases?: true;
}

/** Builds the output of a change: it was published, or it waits for the online keys, with the command to paste next. */
export function changeAnswer(
  result: SignedChange<object>,
  { outcome, details, what, lines: ownLines = [], listsNewReleases }: ChangeTexts,
  { repository }: ChangeFlags,
): Answer {
  const { signedAheadMs, newReleases, ignored, includesWaiting } = result;
  // Attack: a stolen key signed a waiting file. The operator must see that this change publishes it.
  const isListed = includesWaiting === undefined || listsNewReleases === true;
  const label = result.kind === 'live' ? 'publishes' : 'waits';
  const left = listsNewReleases === true ? [] : leftOutLines(ignored, repository);
  const lines = [...ownLines, ...(isListed ? [] : releaseLines(label, newReleases)), ...left];
  const published = { newReleases: releaseDetails(newReleases), ...ignoredDetails(ignored) };
  const changed = { changed: true, ...details, ...published, ...given({ signedAheadMs }) };
  if (result.kind === 'live') {
    const { versions } = result;
    return {
      outcome,
      details: { ...changed, versions },
      lines: [`${outcome.toUpperCase()} ${what}`, ...lines],
    };
  }
  const { missing } = result;
  return {
    outcome: 'signed-targets',
    details: { ...changed, missing },
    lines: [`SIGNED ${what}${waitingText(missing)}`, ...lines],
    next: refreshLine(repository),
  };
}

/**
 * @param what why nothing was changed, for people
 * @returns the answer `nothing-new` with `changed: false`
 */
export function nothingNew(what: string, details: Readonly<Record<string, unknown>>): Answer {
  return {
    outcome: 'nothing-new',
    details: { changed: false, ...details },
    lines: [`NOTHING NEW ${what}`],
  };
}

/** @returns the output of --dry-run for a preview */
export function previewOf(command: string, answer: Answer): Answer {
  const { details, lines } = answer;
  return {
    ...answer,
    type: `${command}.preview`,
    details: { changed: false, ...details },
    lines: [...lines, 'Nothing was written'],
  };
}

/** @returns the command to paste where the online keys are */
export function refreshLine(repository: string): string {
  return `writ refresh --repository ${shellQuote(repository)} --keys DIR   (where the online keys are; the server does it automatically)`;
}
