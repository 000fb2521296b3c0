// A hint that the clock of this host is before the release of the program. It follows the answer of a command and changes no outcome:
// a verified refresh decides what the time means for signatures.
import { utcTimeText } from '../../core/text/iso-time.js';
import { writReleasedAtMs } from '../../core/version.js';
import type { CommandContext } from '../console/command.js';

/** Time zones, and a release that was dated some hours late. */
const toleranceMs = 86_400_000;

/** Only for the clock of the system: a clock that is given comes with its own date of release, or without one. */
export function warnOfClock({
  clock,
  reporter,
  surroundings,
}: Pick<CommandContext, 'clock' | 'reporter' | 'surroundings'>): void {
  const ofSystem = surroundings.clock === undefined ? writReleasedAtMs : undefined;
  const releasedAtMs = surroundings.releasedAtMs ?? ofSystem;
  const nowMs = clock.nowMs();
  if (releasedAtMs === undefined || nowMs >= releasedAtMs - toleranceMs) return;
  const released = utcTimeText(releasedAtMs).slice(0, 10);
  reporter.warn(
    `the clock of this host is wrong: it is ${utcTimeText(nowMs)}, before the release of this version on ${released}; \`timedatectl set-ntp true\` sets it`,
  );
}
