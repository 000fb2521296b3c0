// A warning that the clock of this host is before the release date of the program. The warning follows the answer of a command and
// changes no outcome, because a verified refresh decides how the time affects signatures.
import { utcTimeText } from '../../core/text/iso-time.js';
import { writReleasedAtMs } from '../../core/version.js';
import type { CommandContext } from '../console/command.js';

/** For time zones, and for a release date that is some hours too late. */
const toleranceMs = 86_400_000;

/**
 * @returns the release date of the program in epoch milliseconds; undefined for an injected clock without a release date, which
 *   is not compared
 */
export function releaseTimeOf({ surroundings }: Pick<CommandContext, 'surroundings'>): number | undefined {
  const ofProgram = surroundings.clock === undefined ? writReleasedAtMs : undefined;
  return surroundings.releasedAtMs ?? ofProgram;
}

/** Warns when the clock is more than a day before the release date. */
export function warnOfEarlyClock(context: Pick<CommandContext, 'clock' | 'reporter' | 'surroundings'>): void {
  const { clock, reporter } = context;
  const releasedAtMs = releaseTimeOf(context);
  const nowMs = clock.nowMs();
  if (releasedAtMs === undefined || nowMs >= releasedAtMs - toleranceMs) return;
  const released = utcTimeText(releasedAtMs).slice(0, 10);
  reporter.warn(
    `the clock of this host is wrong: it is ${utcTimeText(nowMs)}, before the release of this version on ${released}; \`timedatectl set-ntp true\` sets it`,
  );
}
