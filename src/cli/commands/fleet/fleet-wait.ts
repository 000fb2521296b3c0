// `writ fleet wait`: waits until a share of the hosts confirmed a release, for pipelines. Prints the number of hosts first,
// queries every two seconds, and ends immediately when the share is out of reach. An unreachable server ends no wait
// before its timeout, and old numbers are always marked as old.
import { InvalidArgumentError } from '#commander';
import { type ErrorCode, isWritError, WritError } from '../../../core/errors.js';
import type { WaitFacts } from '../../../core/fleet/answers.js';
import {
  judgeWait,
  type WaitOutcome,
  type WaitVerdict,
  waitExitCodes,
} from '../../../core/fleet/wait-verdict.js';
import { given } from '../../../core/given.js';
import { isName } from '../../../core/names.js';
import { parseSerial } from '../../../core/release/serial.js';
import { isCertificateErrno } from '../../../platform/net/connect-failure.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { durationFlag, nameFlag, shareFlag } from '../../console/flag-values.js';
import { type FlagValues, optional, preset, toggle } from '../../console/flags.js';
import type { FleetClient, WaitQuery } from '../../fleet/fleet-client.js';
import { findLatestRelease } from '../../fleet/latest-release.js';
import { fleetClientFlags, withFleetClient } from '../../fleet/open-fleet-client.js';
import { clonedTexts, describeSettledCounts, requireSettledCounts } from '../../fleet/settled-counts.js';
import { counted, minuteTime } from '../../show/show-text.js';

const flags = {
  ...fleetClientFlags,
  channel: preset('--channel <name>', 'channel of the bundle', 'stable', nameFlag),
  share: preset('--share <percent>', 'share of the hosts that must be done', 1_000_000, shareFlag, '100%'),
  within: preset('--within <duration>', 'how long to wait', 1_800_000, durationFlag, '30m'),
  accept: preset(
    '--accept <what>',
    'confirmed, or notified: also count hosts where nothing can confirm',
    'confirmed',
    acceptFlag,
  ),
  latest: toggle('--latest', 'the newest release that the server knows, in place of a serial'),
  settled: toggle('--settled', 'a host is done once the release has also outlived its bake time there'),
  exceptSilent: optional(
    '--except-silent <duration>',
    'leave out hosts that have been silent for this long',
    durationFlag,
  ),
};
type WaitFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<WaitFlags> = {
  examples: [
    'writ fleet wait dns-edge 42 --within 30m --url https://fleet.example.net --token-file fleet.token',
    'writ fleet wait dns-edge --latest --channel canary --store /var/lib/writ-fleet',
    'writ fleet wait dns-edge 42 --share 95% --settled --except-silent 2d --store /var/lib/writ-fleet',
  ],
  exitCodes: [
    '0  the share of hosts confirmed this release; with --settled: and it has settled there',
    '1  time over, or no answer',
    '2  no host has this bundle and channel, the repository has no such release, or usage',
    '3  out of reach: too many hosts refused it',
    '4  withdrawn, or superseded by a later release',
  ],
  args: [
    ['<bundle>', 'name of the bundle'],
    ['[serial]', 'serial of the release; none with --latest'],
  ],
  flags,
  run: async ([bundle = '', serialText = ''], flags, context) => {
    if (!isName(bundle)) throw new WritError('USAGE', `${JSON.stringify(bundle)} is not a bundle name`);
    const typed = serialOf(serialText, flags);
    const asked = { bundle, channel: flags.channel, ...given({ exceptSilentMs: flags.exceptSilent }) };
    return retryUntilReachable(flags, context, async (client) => {
      // Resolve it once: a release that is published during the wait supersedes this one, as with a given serial.
      const serial = typed ?? (await findLatestRelease(client, asked, context, flags.within));
      return wait(client, { ...asked, serial }, flags, context);
    });
  },
};

/** @returns undefined for the newest serial */
function serialOf(text: string, { latest }: WaitFlags): number | undefined {
  if (latest === true && text === '') return undefined;
  if (latest === true) throw new WritError('USAGE', 'give a serial or --latest, not both');
  if (text === '') throw new WritError('USAGE', 'give the serial of the release, or --latest');
  const serial = parseSerial(text);
  if (serial !== undefined) return serial;
  throw new WritError('USAGE', `${JSON.stringify(text)} is not a serial`);
}

/** Retries also at the start until the server and its database are reachable: a pipeline may start before them. */
async function retryUntilReachable(
  flags: WaitFlags,
  context: CommandContext,
  begin: (client: FleetClient) => Promise<Answer>,
): Promise<Answer> {
  const { clock, reporter, signal } = context;
  const untilMs = clock.monotonicMs() + flags.within;
  for (let isNew = true; ; isNew = false) {
    try {
      return await withFleetClient(flags, context, begin);
    } catch (error) {
      const leftMs = untilMs - clock.monotonicMs();
      if (!isUnreachable(error) || leftMs <= 0 || signal.aborted) throw error;
      if (isNew) reporter.warn(`no answer from the fleet server yet: ${error.message} (${error.code})`);
      await clock.sleep(Math.min(everyMs, leftMs), signal);
    }
  }
}

/** An untrusted certificate is no temporary failure: it is a mistake of the command line. */
function isUnreachable(error: unknown): error is WritError {
  if (!isWritError(error) || !passing.includes(error.code)) return false;
  return !isCertificateErrno(String(error.facts['reason'] ?? ''));
}

const everyMs = 2000;

interface WaitRound {
  readonly facts: WaitFacts;
  readonly verdict: WaitVerdict;
  /** The share is reached, and the fleet server did not read the repository since. */
  readonly isUnread: boolean;
  /** The code of the failed queries since `facts`; undefined after a successful one. */
  readonly unanswered?: ErrorCode;
}

async function wait(
  client: FleetClient,
  question: WaitQuery,
  flags: WaitFlags,
  context: CommandContext,
): Promise<Answer> {
  const { clock, reporter } = context;
  const startedMs = clock.monotonicMs();
  const until = flags.settled === true ? 'settled' : 'active';
  const terms = { sharePpm: flags.share, withinMs: flags.within, accept: flags.accept, until } as const;
  const first = await client.wait(question);
  if (until === 'settled') requireSettledCounts(first);
  let reached: WaitVerdict['reached'];
  const judge = (facts: WaitFacts): WaitRound => {
    const elapsedMs = clock.monotonicMs() - startedMs;
    const verdict = judgeWait(facts, terms, { frozen: first.of, elapsedMs, ...given({ reached }) });
    reached = verdict.reached;
    const isUnread = reached !== undefined && (facts.readAtMs ?? reached.sinceMs) < reached.sinceMs;
    return { facts, verdict, isUnread };
  };
  let round = judge(first);
  const excepted = first.excepted === 0 ? '' : `, ${first.excepted} silent hosts left out`;
  reporter.finish(
    'hosts',
    `${counted(first.of, 'host')} of ${question.bundle} ${question.channel}${excepted}`,
  );
  const warnOnce = warnerOfNotified(flags, context);
  while (round.verdict.outcome === 'waiting') {
    warnOnce(round);
    if (round.unanswered === undefined) reporter.begin('wait', progressText(round, flags));
    await clock.sleep(Math.min(everyMs, flags.within), context.signal);
    const next = await readFactsOrCode(client, { ...question, sinceMs: first.atMs });
    if (typeof next === 'object') {
      if (round.unanswered !== undefined) reporter.warn('the fleet server answers again');
      round = judge(next);
    } else {
      if (round.unanswered === undefined)
        reporter.warn(`${oldText(round.facts, next)}; then: ${progressText(round, flags)}`);
      round = { ...judge(round.facts), unanswered: next };
    }
  }
  reporter.drop('wait');
  return answerOf({ ...round, flags }, round.verdict.outcome, question);
}

/** Warns once of hosts that cannot confirm, because the wait for them would last until its timeout. */
function warnerOfNotified({ accept }: WaitFlags, { reporter }: CommandContext): (round: WaitRound) => void {
  let isDone = accept === 'notified';
  return ({ facts: { of, notified }, verdict: { needed } }) => {
    if (isDone || of - notified >= needed) return;
    isDone = true;
    const have = `${notified} of ${of} have it and nothing that could confirm it`;
    reporter.warn(`${have}: they count as done with --accept notified alone`);
  };
}

/** Codes of failures that may be temporary. */
const passing: readonly ErrorCode[] = [
  ...(['FLEET_UNANSWERED', 'FLEET_OVERLOADED', 'FLEET_REFUSED_OFTEN', 'INTERNAL'] as const),
  ...(['FLEET_STORE_BUSY', 'FLEET_STORE_UNREACHABLE', 'FLEET_STORE_UNWRITABLE'] as const),
];

/** @returns the facts, or the code of a temporary failure */
async function readFactsOrCode(client: FleetClient, question: WaitQuery): Promise<WaitFacts | ErrorCode> {
  try {
    return await client.wait(question);
  } catch (error) {
    if (!isWritError(error) || !passing.includes(error.code)) throw error;
    return error.code;
  }
}

function oldText({ atMs }: WaitFacts, code: ErrorCode): string {
  return `no answer from the fleet server since ${minuteTime(atMs)} (${code})`;
}

function progressText(
  { facts, verdict, isUnread }: WaitRound,
  { settled }: Pick<WaitFlags, 'settled'>,
): string {
  const { of, needed, done } = verdict;
  const apart = [
    ...(settled === true && facts.settled !== undefined ? describeSettledCounts(facts.settled) : []),
    ...(facts.notified > 0 ? [`${facts.notified} with nothing to confirm`] : []),
    ...(facts.unconfirmed > 0 ? [`${facts.unconfirmed} unconfirmed`] : []),
    ...(facts.silent > 0 ? [`${facts.silent} had it and are silent`] : []),
    ...(facts.refused > 0 ? [`${facts.refused} refused`] : []),
    ...clonedTexts(facts),
    ...(facts.later > 0 ? [`${facts.later} on a later release`] : []),
    ...(facts.elsewhere > 0 ? [`${facts.elsewhere} with another release of this serial`] : []),
  ];
  const last = isUnread ? ['the repository was not read since'] : [];
  return [`${done} of ${of} done, ${needed} needed`, ...apart, ...last].join('; ');
}

const labels: Readonly<Record<WaitOutcome, string>> = {
  reached: 'REACHED  ',
  'time-over': 'TIME OVER',
  nobody: 'NOBODY   ',
  ambiguous: 'AMBIGUOUS',
  'out-of-reach': 'OUT OF REACH',
  withdrawn: 'WITHDRAWN',
  superseded: 'SUPERSEDED',
  absent: 'NO SUCH RELEASE',
};

function answerOf(
  round: WaitRound & { readonly flags: WaitFlags },
  outcome: WaitOutcome,
  { bundle, channel, serial }: WaitQuery,
): Answer {
  const { facts, verdict, unanswered, flags } = round;
  const { schema: _, type: _type, ...counts } = facts;
  const more = facts.refused - facts.refusedHosts.length;
  const lines = [
    `${labels[outcome]} ${bundle} ${serial}: ${progressText(round, flags)}`,
    ...facts.refusedHosts.map(({ host, key, code }) => `  ${host} refused it [${code}]  ${key.slice(0, 12)}`),
    ...(more > 0 ? [`  (${more} more refused it)`] : []),
    ...elsewhereLines(facts),
    ...whyLines(outcome, facts),
    ...(unanswered === undefined ? [] : [`  These numbers are old: ${oldText(facts, unanswered)}.`]),
  ];
  const details = {
    bundle,
    channel,
    serial,
    ...counts,
    of: verdict.of,
    needed: verdict.needed,
    done: verdict.done,
    ...given({ unanswered }),
  };
  const isOpen = outcome === 'time-over' || outcome === 'out-of-reach';
  const cloned = (facts.cloned ?? 0) > 0 ? 'state=cloned,' : '';
  const where = facts.refused > 0 ? `state=refused,serial=${serial},` : cloned;
  const next = isOpen ? `writ fleet hosts --where ${where}bundle=${bundle},channel=${channel}` : undefined;
  return { outcome, exitCode: waitExitCodes[outcome], details, lines, next };
}

function elsewhereLines({ elsewhere, elsewhereHosts = [] }: WaitFacts): string[] {
  const more = elsewhere - elsewhereHosts.length;
  if (elsewhereHosts.length === 0) return [];
  return [
    ...elsewhereHosts.map(
      ({ host, key }) => `  ${host} has another release of this serial  ${key.slice(0, 12)}`,
    ),
    ...(more > 0 ? [`  (${more} more have another release of this serial)`] : []),
  ];
}

function whyLines(outcome: WaitOutcome, facts: WaitFacts): string[] {
  const { notified, later, supersededBy, signedSerial } = facts;
  const signed = signedSerial === undefined ? [] : signedLines(outcome, signedSerial);
  if (signed.length > 0) return signed;
  if (outcome === 'nobody') return ['  No enrolled, running host reports this bundle and channel.'];
  if (outcome === 'ambiguous') return ['  Releases of different repositories have this serial.'];
  if (outcome === 'superseded') return [`  ${counted(later, 'host')} of these moved on to ${supersededBy}.`];
  if (outcome === 'time-over' && notified > 0)
    return ['  Hosts where nothing can confirm count as done with --accept notified.'];
  return [];
}

/** The state of the release in the repository, which the fleet server read itself. */
function signedLines(outcome: WaitOutcome, serial: number): string[] {
  if (outcome === 'withdrawn') return [`  Its publisher withdrew it: ${serial} should be in use.`];
  if (outcome === 'superseded') return [`  The repository has signed ${serial}.`];
  if (outcome === 'absent')
    return [`  The repository has not signed this serial: its channel has ${serial}.`];
  if (outcome === 'ambiguous')
    return ['  The repository has signed a release of this serial with other content.'];
  return [];
}

function acceptFlag(text: string): 'confirmed' | 'notified' {
  if (text === 'confirmed' || text === 'notified') return text;
  throw new InvalidArgumentError('Give confirmed or notified.');
}
