// `writ promote`: points a channel to the release of another channel, with the same archive and serial.
import {
  type PromoteResult,
  type Promotion,
  previewPromotion,
  promoteRelease,
} from '../../../publisher/release/promote.js';
import type { Answer, CommandDefinition } from '../../console/command.js';
import { nameFlag } from '../../console/flag-values.js';
import { type FlagValues, required, toggle } from '../../console/flags.js';
import {
  changeBoundExitCode,
  changeBoundFlags,
  changeBoundsOf,
  changeDetails,
  changeLines,
  type ShownChange,
  warnOfUnknownChange,
} from '../../repository/change-bound-flags.js';
import {
  changeAnswer,
  changeExitCodes,
  changeFlags,
  changeOptions,
  deltasFlag,
  nothingNew,
  previewOf,
  reportSigned,
} from '../../repository/change-flags.js';
import { requireSettledShare, settledExitCode, settledFlags } from '../../repository/require-settled.js';
import { deltaDetails, deltasText } from '../../show/show-repository.js';

const flags = {
  ...changeFlags,
  bundle: required('--bundle <name>', 'name of the policy tree', nameFlag),
  from: required('--from <channel>', 'channel that has the release', nameFlag),
  to: required('--to <channel>', 'who gets it', nameFlag),
  deltas: deltasFlag,
  ...changeBoundFlags,
  ...settledFlags,
  dryRun: toggle('--dry-run', 'show what would be promoted, and write nothing'),
};
type PromoteFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<PromoteFlags> = {
  examples: [
    'writ promote --repository repo --keys keys --bundle dns-edge --from canary --to stable',
    'writ promote --repository repo --keys keys --bundle dns-edge --from canary --to stable --dry-run',
    'writ promote --repository repo --keys keys --bundle dns-edge --from canary --to stable --require-settled 95% --fleet https://fleet.example.net --token-file fleet.token',
  ],
  exitCodes: [
    '0  promoted, nothing new, or signed and waiting for the online keys',
    ...[...changeExitCodes, changeBoundExitCode, settledExitCode].sort(),
  ],
  flags,
  acts: () => true,
  run: async (_args, flags, context) => {
    const options = { ...changeOptions(flags, context, 'promote'), change: changeBoundsOf(flags) };
    let hosts: object | undefined;
    const approve = async ({ after: { serial, manifest } }: Promotion): Promise<void> => {
      const { bundle, from: channel } = flags;
      const release = { bundle, channel, serial, manifest: manifest.digest };
      hosts = await requireSettledShare(flags, release, context);
    };
    if (flags.dryRun) {
      const promotion = await previewPromotion(flags, options);
      if (promotion !== undefined) await approve(promotion);
      warnOfUnknownChange(shownChange(promotion), context.reporter);
      return withHosts(previewAnswer(promotion, flags), hosts);
    }
    const asked = flags.requireSettled === undefined ? {} : { approve };
    const result = await promoteRelease(flags, { ...options, deltas: flags.deltas, ...asked });
    if (result.kind !== 'nothing-new' && result.deltas.length > 0)
      context.reporter.finish('delta', deltasText(result.deltas));
    if (result.kind !== 'nothing-new') warnOfUnknownChange(shownChange(result.info), context.reporter);
    reportSigned(result, context.reporter);
    return withHosts(answer(result, flags), hosts);
  },
};

function withHosts(answer: Answer, hosts: object | undefined): Answer {
  return hosts === undefined ? answer : { ...answer, details: { ...answer.details, hosts } };
}

function answer(result: PromoteResult, flags: PromoteFlags): Answer {
  const { bundle, from, to } = flags;
  if (result.kind === 'nothing-new') return nothingNew(nothing(flags), { bundle, from, to });
  const { info, signed } = result;
  const deltas = deltaDetails(info?.after.deltas);
  const details = { bundle, from, to, ...serials(info), ...changeDetails(shownChange(info)), deltas, signed };
  const lines = changeLines(shownChange(info));
  return changeAnswer(result, { outcome: 'promoted', details, what: move(flags, info), lines }, flags);
}

function previewAnswer(promotion: Promotion | undefined, flags: PromoteFlags): Answer {
  const { bundle, from, to } = flags;
  const shown = shownChange(promotion);
  const details = { bundle, from, to, ...serials(promotion), ...changeDetails(shown) };
  const lines = [`WOULD PROMOTE ${move(flags, promotion)}`, ...changeLines(shown)];
  const would = { outcome: 'would-promote', details, lines };
  return previewOf('promote', promotion === undefined ? nothingNew(nothing(flags), details) : would);
}

function shownChange(promotion: Promotion | undefined): ShownChange {
  const { before, change, accepted = [], withinBoundsOf } = promotion ?? {};
  return { previousSerial: before?.serial, change, accepted, withinBoundsOf };
}

function nothing({ bundle, from, to }: PromoteFlags): string {
  return `${bundle} ${to} already has the release of ${from}`;
}

function move({ bundle, from, to }: PromoteFlags, promotion: Promotion | undefined): string {
  if (promotion === undefined) return `${bundle} ${from} to ${to}`;
  const { before, after } = promotion;
  const start = before === undefined ? '' : `${before.serial} -> `;
  const revision = after.revision === '' ? '' : ` (${after.revision})`;
  return `${bundle} ${from} to ${to}: serial ${start}${after.serial}${revision}`;
}

function serials(promotion: Promotion | undefined): Record<string, unknown> {
  if (promotion === undefined) return {};
  const { serial, revision } = promotion.after;
  return { serial, revision, previousSerial: promotion.before?.serial ?? null };
}
