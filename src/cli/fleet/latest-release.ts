// Finds the newest release of a bundle and channel for `writ fleet wait --latest`. If the server follows a repository, its signed
// metadata decides, after a refresh that began after the query: an earlier one does not contain a publish of this minute. Otherwise
// the highest serial that hosts report decides.
import { WritError } from '../../core/errors.js';
import type { FleetSummary } from '../../core/fleet/answers.js';
import { isSameChannel } from '../../core/fleet/signed-releases.js';
import type { CommandContext } from '../console/command.js';
import { minuteTime } from '../show/show-text.js';
import type { FleetClient, WaitQuery } from './fleet-client.js';

type Channel = Pick<WaitQuery, 'bundle' | 'channel'>;
type Known = Pick<FleetSummary, 'repositories' | 'releases' | 'offers'>;

export interface LatestRelease {
  /** Undefined when neither a repository nor a host has a release of this channel. */
  readonly serial: number | undefined;
  /** Begin of the oldest deciding refresh, in epoch milliseconds; 0 before the first; undefined when no repository is followed. */
  readonly readAtMs?: number;
}

/** The longest wait for a refresh that began after the query; the slowest server refreshes once a minute. */
const maxWaitMs = 120_000;
const queryEveryMs = 2000;

/**
 * @param asked the bundle and channel of the query
 * @returns the signed serial if repositories are followed, and readAtMs, the oldest refresh of those that decide (0: never); else
 *   the highest serial that hosts report, without readAtMs. serial is undefined if no repository or host has a release of this
 *   channel
 * @throws WritError USAGE when repositories have different newest releases
 */
export function chooseLatest({ repositories = [], releases, offers }: Known, asked: Channel): LatestRelease {
  const signed = repositories.flatMap((one) =>
    one.releases.filter((release) => isSameChannel(release, asked)).map(({ serial }) => ({ ...one, serial })),
  );
  const [first] = signed;
  const other = signed.find(({ serial }) => serial !== first?.serial);
  if (first !== undefined && other !== undefined)
    throw new WritError(
      'USAGE',
      `--latest cannot decide: ${first.url} has signed ${first.serial}, ${other.url} ${other.serial}`,
      { hint: 'Give the serial of the release in place of --latest.' },
    );
  if (repositories.length > 0) {
    const deciding = first === undefined ? repositories : signed;
    return {
      serial: first?.serial,
      readAtMs: Math.min(...deciding.map(({ checkedAtMs }) => checkedAtMs ?? 0)),
    };
  }
  const reported = [...releases, ...offers].filter((one) => isSameChannel(one, asked));
  return { serial: reported.length === 0 ? undefined : Math.max(...reported.map(({ serial }) => serial)) };
}

/**
 * @param withinMs the longest wait for a refresh; at most two minutes count
 * @returns the serial of the newest release, which a line of the output names with its source. Warns without a refresh in time
 * @throws WritError USAGE when no release is known, or repositories differ
 */
export async function findLatestRelease(
  client: Pick<FleetClient, 'wait' | 'summary'>,
  channel: Channel,
  { clock, reporter, signal }: Pick<CommandContext, 'clock' | 'reporter' | 'signal'>,
  withinMs: number,
): Promise<number> {
  const untilMs = clock.monotonicMs() + Math.min(maxWaitMs, withinMs);
  // A query about any serial makes the server refresh its repositories within 5 s.
  const requestRefresh = async () => (await client.wait({ ...channel, serial: 1 })).atMs;
  const sinceMs = await requestRefresh();
  for (;;) {
    const latest = chooseLatest(await client.summary(), channel);
    const isRefreshed = (latest.readAtMs ?? sinceMs) >= sinceMs;
    const leftMs = untilMs - clock.monotonicMs();
    if (isRefreshed || leftMs <= 0) return reportLatest(latest, isRefreshed, channel, reporter);
    reporter.begin('release', 'the repository is read again');
    await clock.sleep(Math.min(queryEveryMs, leftMs), signal);
    await requestRefresh();
  }
}

function reportLatest(
  { serial, readAtMs }: LatestRelease,
  isRefreshed: boolean,
  { bundle, channel }: Channel,
  reporter: CommandContext['reporter'],
): number {
  reporter.drop('release');
  if (serial === undefined)
    throw new WritError('USAGE', `the fleet server knows no release of ${bundle} ${channel}`, {
      hint: 'Correct the name, give --channel, or give the serial of the release in place of --latest.',
    });
  reporter.finish('release', `${bundle} ${channel} ${serial} is the newest`);
  if (readAtMs === undefined)
    reporter.warn('the fleet server reads no repository: a release that no host reports yet is unknown');
  else if (!isRefreshed) {
    const when = readAtMs === 0 ? 'yet' : `since ${minuteTime(readAtMs)}`;
    reporter.warn(`the fleet server has not read the repository ${when}: there may be a newer release`);
  }
  return serial;
}
