// `writ withdraw`: signs a withdrawal, and prints the new release of each channel.
import {
  type ChannelMove,
  previewWithdrawal,
  type WithdrawResult,
  withdrawRelease,
} from '../../../publisher/release/withdraw.js';
import type { Answer, CommandDefinition } from '../../console/command.js';
import { nameFlag, repeatedFlag, serialFlag } from '../../console/flag-values.js';
import { type FlagValues, optional, preset, required, toggle } from '../../console/flags.js';
import {
  changeAnswer,
  changeExitCodes,
  changeFlags,
  changeOptions,
  deltasFlag,
  nothingNew,
  previewOf,
  refreshLine,
  reportSigned,
  waitingText,
} from '../../repository/change-flags.js';
import { deltaDetails, deltasText, releaseDetails, releaseLines } from '../../show/show-repository.js';

const flags = {
  ...changeFlags,
  bundle: required('--bundle <name>', 'name of the policy tree', nameFlag),
  serial: required('--serial <n>', 'the bad release; may be repeated', repeatedFlag(serialFlag)),
  to: optional(
    '--to <m>',
    'serial that the channel gets instead; default: the newest one that is not withdrawn',
    serialFlag,
  ),
  channel: optional('--channel <name>', 'only this channel; default: every channel of the bundle', nameFlag),
  reason: preset('--reason <text>', 'why, for people; it is signed and public', ''),
  deltas: deltasFlag,
  dryRun: toggle('--dry-run', 'show what would be withdrawn, and write nothing'),
};
type WithdrawFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<WithdrawFlags> = {
  examples: [
    'writ withdraw --repository repo --keys keys --bundle dns-edge --serial 42',
    'writ withdraw --repository repo --keys keys --bundle dns-edge --serial 42 --serial 41 --to 40 --reason "view eu"',
    'writ withdraw --repository repo --keys keys --bundle dns-edge --serial 42 --dry-run',
  ],
  exitCodes: [
    '0  withdrawn, already withdrawn, or signed and waiting for the online keys',
    ...changeExitCodes,
  ],
  flags,
  acts: () => true,
  run: async (_args, flags, context) => {
    const options = changeOptions(flags, context, 'withdraw');
    const request = { ...flags, serials: serialsOf(flags) };
    if (flags.dryRun) return previewAnswer(previewWithdrawal(request, options), flags);
    const result = await withdrawRelease(request, { ...options, deltas: flags.deltas });
    if (result.kind !== 'nothing-new' && result.deltas.length > 0)
      context.reporter.finish('delta', deltasText(result.deltas));
    reportSigned(result, context.reporter);
    return answer(result, flags);
  },
};

function answer(result: WithdrawResult, flags: WithdrawFlags): Answer {
  const name = nameOf(flags);
  if (result.kind === 'nothing-new') return nothingNew(`${name} is already withdrawn`, asked(flags));
  if (result.kind === 'waiting' && result.info === undefined) return stillWaiting(result, name, flags);
  const { kind, info: moves = [], signed } = result;
  const details = { ...asked(flags), channels: moves.map(movedDetails), signed };
  const lines = [...moves.map(moveLine), ...(kind === 'live' ? whatHostsDo(moves) : [])];
  const what = kind === 'live' ? name : `${name} as withdrawn`;
  return changeAnswer(result, { outcome: 'withdrawn', details, what, lines }, flags);
}

/** The answer when nothing was signed, because an earlier withdrawal waits for the online keys. */
function stillWaiting(
  { missing, newReleases }: Extract<WithdrawResult, { kind: 'waiting' }>,
  name: string,
  flags: WithdrawFlags,
): Answer {
  const waiting = { missing, newReleases: releaseDetails(newReleases) };
  const what = `${name} is already withdrawn${waitingText(missing)}`;
  const unchanged = nothingNew(what, { ...asked(flags), ...waiting });
  return {
    ...unchanged,
    lines: [...unchanged.lines, ...releaseLines('waits', newReleases)],
    next: refreshLine(flags.repository),
  };
}

function previewAnswer(moves: readonly ChannelMove[], flags: WithdrawFlags): Answer {
  const name = nameOf(flags);
  const details = { ...asked(flags), channels: moves.map(moveDetails) };
  const lines = [`WOULD WITHDRAW ${name}`, ...moves.map(moveLine)];
  const would = { outcome: 'would-withdraw', details, lines };
  return previewOf(
    'withdraw',
    moves.length > 0 ? would : nothingNew(`${name} is already withdrawn`, details),
  );
}

/** @returns the serials sorted and without duplicates */
function serialsOf({ serial }: WithdrawFlags): readonly number[] {
  return [...new Set(serial)].sort((a, b) => a - b);
}

function nameOf(flags: WithdrawFlags): string {
  return `${flags.bundle} ${serialsOf(flags).join(', ')}`;
}

function asked(flags: WithdrawFlags): Record<string, unknown> {
  return { bundle: flags.bundle, serials: serialsOf(flags), reason: flags.reason };
}

function moveLine({ before, after }: ChannelMove): string {
  if (before.serial === after.serial) return `  ${after.channel}  stays at ${after.serial}`;
  const revision = after.revision === '' ? '' : ` (${after.revision})`;
  return `  ${after.channel}  ${before.serial} -> ${after.serial}${revision}`;
}

function moveDetails({ before, after }: ChannelMove): Record<string, unknown> {
  const { channel, serial, revision, withdrawn } = after;
  return { channel, previousSerial: before.serial, serial, revision, withdrawn };
}

function movedDetails(move: ChannelMove): Record<string, unknown> {
  return { ...moveDetails(move), deltas: deltaDetails(move.after.deltas) };
}

function whatHostsDo(moves: readonly ChannelMove[]): string[] {
  const moved = moves.some(({ before, after }) => before.serial !== after.serial);
  return moved ? ['  Hosts follow at their next poll; an offline host follows when it returns.'] : [];
}
