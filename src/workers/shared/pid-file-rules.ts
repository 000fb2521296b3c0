// Decides whether a pid file can belong to a process. Pure: gets facts about the file, the process and other pid namespaces, and
// returns a verdict.

/** Tolerance for a process that seems younger than its pid file, because the kernel reports the boot time in whole seconds. */
const startToleranceMs = 2000;
/** The unit of start times in /proc: hundredths of a second on every processor that Node supports. */
const ticksPerSecond = 100;

/** Refuses a file of another user, because a worker that writes its pid file could direct root's signal to any process. */
export function isTrustedOwner(
  fileUid: number,
  processUid: number | undefined,
  ownUid: number | undefined = process.getuid?.(),
): boolean {
  return fileUid === 0 || fileUid === ownUid || fileUid === processUid;
}

export interface WritingTimes {
  /** Start of the process, in ticks after the boot. */
  readonly startTicks: number;
  /** Mtime of the file, by the clock of that time. */
  readonly writtenAtMs: number;
  /** Boot time of the host, by each setting of the clock since then. */
  readonly bootAtMs: readonly number[];
  readonly uptimeMs: number;
}

/**
 * Detects a reused pid: its process is younger than the file. A clock change after the boot changes the age of the file, so that each
 * known setting of the clock is tried.
 * @returns whether the process existed when the file was written
 */
export function mayHaveWritten({ startTicks, writtenAtMs, bootAtMs, uptimeMs }: WritingTimes): boolean {
  const startMs = (startTicks * 1000) / ticksPerSecond;
  return bootAtMs.some((bootMs) => {
    const writtenMs = writtenAtMs - bootMs;
    // A file from before the boot is older than every process.
    return startMs <= writtenMs + startToleranceMs && writtenMs <= uptimeMs + startToleranceMs;
  });
}
