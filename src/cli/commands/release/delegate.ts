// `writ delegate`: changes which role signs which bundles, and prints the change before it is signed.
import { WritError } from '../../../core/errors.js';
import { readPublicKey } from '../../../publisher/keys/public-key.js';
import {
  type DelegateResult,
  type DelegationRequest,
  delegateRole,
  previewDelegation,
} from '../../../publisher/teams/delegate.js';
import type { DelegationPlan } from '../../../publisher/teams/delegation-plan.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { durationFlag, numberFlag, repeatedText } from '../../console/flag-values.js';
import { type FlagValues, optional, toggle } from '../../console/flags.js';
import { askYes } from '../../console/questions.js';
import {
  changeAnswer,
  changeExitCodes,
  changeFlags,
  changeOptions,
  nothingNew,
  previewOf,
  reportSigned,
  waitingText,
} from '../../repository/change-flags.js';
import {
  holdersText,
  leftOutLines,
  releaseDetails,
  releaseLines,
  shellQuote,
} from '../../show/show-repository.js';
import { counted } from '../../show/show-text.js';

const flags = {
  ...changeFlags,
  paths: optional(
    '--paths <pattern>',
    "what it signs, for example 'dns-*/*'; may be repeated; default: unchanged",
    repeatedText,
  ),
  key: optional('--key <file>', 'public key of the team; may be repeated; default: unchanged', repeatedText),
  threshold: optional(
    '--threshold <n>',
    'how many of the keys must sign; one command makes all signatures',
    numberFlag(1, 100),
  ),
  life: optional('--life <duration>', 'time from signing to expiry', durationFlag),
  handOver: toggle('--hand-over', 'move existing releases to the role that now signs their path'),
  includeWaiting: toggle(
    '--include-waiting',
    'also hand over or return releases of the role that no snapshot lists',
  ),
  remove: toggle('--remove', 'end the delegation'),
  yes: toggle('-y, --yes', 'do not ask for confirmation'),
  dryRun: toggle('--dry-run', 'show what would change, and write nothing'),
};
type DelegateFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<DelegateFlags> = {
  examples: [
    "writ delegate dns-team --repository repo --keys keys --paths 'dns-*/*' --key dns.pub",
    "writ delegate dns-team --repository repo --keys keys --paths 'dns-*/*' --key anna.pub --key ben.pub --threshold 2 --hand-over",
    'writ delegate dns-team --repository repo --keys keys --remove --hand-over --dry-run',
  ],
  exitCodes: [
    '0  delegated, changed or removed; nothing new; signed and waiting; or not changed because you answered no',
    ...changeExitCodes,
  ],
  args: [['<role>', "name of the team's role"]],
  flags,
  acts: () => true,
  run: async ([role = ''], flags, context) => {
    const options = changeOptions(flags, context, 'delegate');
    const request = requestOf(role, flags, context);
    const plan = previewDelegation(request, options);
    if (flags.dryRun) return previewAnswer(plan, role, flags);
    if (plan !== undefined) {
      if (!flags.yes) for (const line of planLines(plan, flags)) context.reporter.note(line);
      const go = await askYes(`${questions[plan.kind]} ${role}?`, flags, context);
      const lines = [`NOT CHANGED ${role}`, 'Nothing was written'];
      if (!go) return { outcome: 'left-alone', details: { changed: false, role }, lines };
    }
    const result = await delegateRole(request, options);
    reportSigned(result, context.reporter);
    return answer(result, role, flags);
  },
};

const questions = { created: 'Delegate to', changed: 'Change', removed: 'Remove' } as const;

function requestOf(role: string, flags: DelegateFlags, { at }: CommandContext): DelegationRequest {
  const { paths, key, threshold, life, remove } = flags;
  const asked = { role, shouldHandOver: flags.handOver === true } as const;
  const shouldIncludeWaiting = flags.includeWaiting;
  const given = [paths, key, threshold, life].some((value) => value !== undefined);
  if (remove === true) {
    if (given)
      throw new WritError('USAGE', '--remove cannot be combined with paths, keys, threshold or life');
    return { ...asked, shouldIncludeWaiting };
  }
  const keys = key?.map((path) => readPublicKey(at(path)));
  return { ...asked, shouldIncludeWaiting, change: { paths, keys, threshold, validityMs: life } };
}

function planLines(plan: DelegationPlan, { repository }: DelegateFlags): string[] {
  const { role, kind, before, after, names, moved, handedOver, returned, leftOut } = plan;
  const described = after ?? before;
  const paths = described?.paths ?? [];
  const people = (described?.keyids ?? []).map((id) => `${names.get(id) ?? ''} (${id.slice(0, 8)})`);
  return [
    `  ${role}  ${paths.join(' ')}`,
    `  ${kind === 'removed' ? 'was signed' : 'signed'} by ${described?.threshold ?? 1} of ${people.join(', ')}`,
    ...((after?.threshold ?? 1) > 1
      ? [`  one command makes all ${after?.threshold} signatures: in one --keys, or by --signer`]
      : []),
    ...moved.slice(0, 20).map((path) => `  moves  ${path}`),
    ...(moved.length > 20 ? [`  (${moved.length - 20} more move)`] : []),
    ...releaseLines('hands over', handedOver),
    ...releaseLines('returns to the targets', returned),
    ...releaseLines('leaves out', leftOut),
    ...(leftOut.length === 0 ? [] : [leftOutHint(repository)]),
  ];
}

function leftOutHint(repository: string): string {
  const command = `writ repo log --repository ${shellQuote(repository)}`;
  return `  No snapshot in the repository lists these, and the new targets would vouch for them. \`${command}\` shows them; --include-waiting includes them.`;
}

function planDetails({
  role,
  kind,
  after,
  moved,
  names,
  handedOver,
  returned,
  leftOut,
}: DelegationPlan): Record<string, unknown> {
  return {
    role,
    kind,
    paths: after?.paths ?? [],
    threshold: after?.threshold ?? null,
    keys: (after?.keyids ?? []).map((keyId) => ({ keyId, name: names.get(keyId) ?? null })),
    moved,
    handedOver: releaseDetails([...handedOver, ...returned]),
    leftOut: releaseDetails(leftOut),
  };
}

function previewAnswer(plan: DelegationPlan | undefined, role: string, flags: DelegateFlags): Answer {
  if (plan === undefined) return previewOf('delegate', asYouSay(role));
  const verbs = { created: 'DELEGATE TO', changed: 'CHANGE', removed: 'REMOVE' };
  return previewOf('delegate', {
    outcome: 'would-delegate',
    details: { ...planDetails(plan), needsSignature: plan.needsSignature },
    lines: [`WOULD ${verbs[plan.kind]} ${role}`, ...planLines(plan, flags)],
  });
}

function asYouSay(role: string): Answer {
  return nothingNew(`${role} is already like this`, { role });
}

const outcomes = { created: 'delegated', changed: 'changed', removed: 'removed' } as const;

function answer(result: DelegateResult, role: string, flags: DelegateFlags): Answer {
  if (result.kind === 'nothing-new') return asYouSay(role);
  const { plan, signed, waitsForRole } = result;
  const outcome = plan === undefined ? 'live' : outcomes[plan.kind];
  const details = { role, ...(plan === undefined ? {} : planDetails(plan)), signed, waitsForRole };
  const lines = [
    ...(plan === undefined ? [] : planLines(plan, flags)),
    ...releaseLines(result.kind === 'live' ? 'publishes' : 'waits', result.newReleases),
    ...leftOutLines(result.ignored, flags.repository),
    ...(waitsForRole ? [waitText(plan?.taken.length ?? 0, role)] : []),
  ];
  const texts = { what: role, lines, listsNewReleases: true } as const;
  const { next: refresh, ...change } = changeAnswer(result, { outcome, details, ...texts }, flags);
  const waiting = result.kind === 'waiting' ? waitingText(result.missing) : '';
  return {
    ...change,
    outcome,
    lines: [`${outcome.toUpperCase()} ${role}${waiting}`, ...lines],
    next: waitsForRole ? signLine(plan, role, flags) : refresh,
  };
}

/** @param taken the number of releases that move from the targets to the role */
function waitText(taken: number, role: string): string {
  const what = taken === 0 ? '' : ` Hosts keep their ${counted(taken, 'release')} until then.`;
  return `  ${role} lists nothing new until its keys have signed.${what}`;
}

function signLine(plan: DelegationPlan | undefined, role: string, { repository }: DelegateFlags): string {
  const holders = holdersText(plan?.after?.threshold ?? 1, [...(plan?.names.values() ?? [])]);
  return `writ sign --role ${role} --repository ${shellQuote(repository)} --keys DIR   (${holders})`;
}
