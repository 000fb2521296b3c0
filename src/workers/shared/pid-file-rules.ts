// Which process a pid file may mean. Pure: what is known of the file, of the process and of other pid namespaces comes in,
// a verdict goes out.

/** So much later than its own pid file no process starts; the kernel gives the boot time in whole seconds. */
const startToleranceMs = 2000;
/** The kernel counts start times in hundredths of a second on every processor that Node runs on. */
const ticksPerSecond = 100;

/** A worker that may write its pid file must not be able to aim root's signal at a process of another user. */
export function isTrustedOwner(
  fileUid: number,
  processUid: number | undefined,
  ownUid: number | undefined = process.getuid?.(),
): boolean {
  return fileUid === 0 || fileUid === ownUid || fileUid === processUid;
}

export interface WritingTimes {
  /** When the process began, in ticks after the boot. */
  readonly startTicks: number;
  /** When the file was written, by the clock of then. */
  readonly writtenAtMs: number;
  /** When the host booted, by each clock that it has had. */
  readonly bootAtMs: readonly number[];
  readonly uptimeMs: number;
}

/**
 * A number that is used again belongs to a process that is younger than the file. By a clock that was set since the boot
 * the file may have another age: each clock under which it was written in this boot is tried.
 * @returns whether the process was there when the file was written
 */
export function mayHaveWritten({ startTicks, writtenAtMs, bootAtMs, uptimeMs }: WritingTimes): boolean {
  const startMs = (startTicks * 1000) / ticksPerSecond;
  return bootAtMs.some((bootMs) => {
    const writtenMs = writtenAtMs - bootMs;
    // No process starts before the boot: what is older than the boot is older than each process.
    return startMs <= writtenMs + startToleranceMs && writtenMs <= uptimeMs + startToleranceMs;
  });
}
