// Asks the kernel by an installed program whether its clock is synchronized, because Node has no adjtimex. Without such a
// program, or without permission as in most containers, the result is unknown. Files of a time daemon are not used: their
// times come from the clock in question.
import { runCommand } from './run-command.js';

export type ClockSync = 'synchronised' | 'unsynchronised' | 'unknown';

type Command = readonly [string, ...string[]];

/** First that of systemd, then the two programs named adjtimex: of its own package, and of BusyBox, which has no flag. */
const programs: readonly { readonly argv: Command; readonly read: (stdout: string) => ClockSync }[] = [
  { argv: ['timedatectl', 'show', '--property=NTPSynchronized', '--value'], read: readTimedatectl },
  { argv: ['adjtimex', '--print'], read: readAdjtimex },
  { argv: ['busybox', 'adjtimex'], read: readAdjtimex },
];

/** Asks whether the clock is synchronized. Never rejects. @param run replaced in tests */
export async function askClockSync(run: typeof runCommand = runCommand): Promise<ClockSync> {
  for (const { argv, read } of programs) {
    const result = await run({ argv, timeoutMs: 3000, maxOutputBytes: 10_000 });
    const answer = result.kind === 'exited' ? read(result.stdout) : 'unknown';
    if (answer !== 'unknown') return answer;
  }
  return 'unknown';
}

/** @param stdout of systemd 239 and later */
function readTimedatectl(stdout: string): ClockSync {
  if (stdout.trim() === 'yes') return 'synchronised';
  return stdout.trim() === 'no' ? 'unsynchronised' : 'unknown';
}

const statusUnsynchronised = 0x40;

function readAdjtimex(stdout: string): ClockSync {
  const status = /^\s*status:\s+([0-9]{1,6})\b/m.exec(stdout)?.[1];
  if (status === undefined) return 'unknown';
  return (Number(status) & statusUnsynchronised) === 0 ? 'synchronised' : 'unsynchronised';
}
