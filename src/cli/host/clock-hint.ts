// A hint that the clock of this host is before the release of the program. It follows the answer of a command and changes no outcome:
// a verified refresh decides what the time means for signatures.
import { utcTimeText } from '../../core/text/iso-time.js';
import { writReleasedAtMs } from '../../core/version.js';
import type { CommandContext } from '../console/command.js';

/** Time zones, and a release that was dated some hours late. */
const toleranceMs = 86_400_000;

/** @returns undefined for a clock that is given without a date of release: it is not compared */
export function releaseTimeOf({ surroundings }: Pick<CommandContext, 'surroundings'>): number | undefined {
  const ofSystem = surroundings.clock === undefined ? writReleasedAtMs : undefined;
  return surroundings.releasedAtMs ?? ofSystem;
}

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
