// The newest release of a bundle and channel, as a fleet server knows it: `writ fleet wait --latest`. Signed metadata decides where
// the server reads the repository, and only a reading that began after the question: an earlier one does not know a publish of
// this minute. Without a repository the highest serial that hosts report decides.
import { WritError } from '../../core/errors.js';
import type { FleetSummary } from '../../core/fleet/answers.js';
import { isSameChannel } from '../../core/fleet/signed-releases.js';
import type { CommandContext } from '../console/command.js';
import { minuteTime } from '../show/show-text.js';
import type { FleetDoor, WaitAsked } from './door.js';

type Channel = Pick<WaitAsked, 'bundle' | 'channel'>;
type Known = Pick<FleetSummary, 'repositories' | 'releases' | 'offers'>;

export interface LatestRelease {
  /** Undefined: neither a repository nor a host has a release of this channel. */
  readonly serial: number | undefined;
  /** When the oldest reading began that decides, 0 for none yet; undefined where the server reads no repository. */
  readonly readAtMs?: number;
}

/** How long a reading is waited for that began after the question; the slowest server reads once a minute. */
const readWithinMs = 120_000;
const everyMs = 2000;

/** @throws WritError USAGE: repositories differ in what is the newest */
export function latestOf({ repositories = [], releases, offers }: Known, asked: Channel): LatestRelease {
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
 * @param withinMs no reading is waited for longer than this
 * @returns the serial of the newest release; a line of the output says which, and what it is known from
 * @throws WritError USAGE: none is known, or repositories differ
 */
export async function findLatest(
  door: Pick<FleetDoor, 'wait' | 'summary'>,
  asked: Channel,
  { clock, reporter, signal }: Pick<CommandContext, 'clock' | 'reporter' | 'signal'>,
  withinMs: number,
): Promise<number> {
  const untilMs = clock.monotonicMs() + Math.min(readWithinMs, withinMs);
  // A question about a release makes the server read its repositories within 5 s, whatever the serial.
  const ask = async () => (await door.wait({ ...asked, serial: 1 })).atMs;
  const sinceMs = await ask();
  for (;;) {
    const latest = latestOf(await door.summary(), asked);
    const isRead = (latest.readAtMs ?? sinceMs) >= sinceMs;
    const leftMs = untilMs - clock.monotonicMs();
    if (isRead || leftMs <= 0) return reportLatest(latest, isRead, asked, reporter);
    reporter.begin('release', 'the repository is read again');
    await clock.sleep(Math.min(everyMs, leftMs), signal);
    await ask();
  }
}

function reportLatest(
  { serial, readAtMs }: LatestRelease,
  isRead: boolean,
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
  else if (!isRead) {
    const when = readAtMs === 0 ? 'yet' : `since ${minuteTime(readAtMs)}`;
    reporter.warn(`the fleet server has not read the repository ${when}: there may be a newer release`);
  }
  return serial;
}
