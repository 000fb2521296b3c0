// Parses supervisord's own log for the ends of a process. Pure. Once the process runs again, only the log distinguishes an unexpected
// exit from a requested stop.

export interface LoggedEnds {
  readonly abnormal: number;
  readonly clean: number;
  /** Ends by the signal of a notification. A process that does not handle the signal yet exits, whatever its policy. */
  readonly bySignal: number;
  /** Time of the last line in the format of supervisord; undefined without a line. */
  readonly lastAt: string | undefined;
}

interface LogOptions {
  readonly name: string;
  readonly after: string;
  readonly signal?: string | undefined;
}

const timed = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) [A-Z]{4} (.*)$/;

/**
 * @param text the end of supervisord's log; its first line may be incomplete
 * @param options.name of the process, without its group
 * @param options.after lines up to this time were counted before, '' counts all; times in one log can be compared as texts
 * @param options.signal that Writ notifies with, as HUP; undefined: no end counts as `bySignal`
 * @returns the counts of the ends after that time, and the time of the last line after it; `lastAt` is undefined and all counts
 *   are 0 without such lines. Unknown lines count as no end. Throws nothing.
 */
export function parseSupervisordLog(text: string, { name, after, signal }: LogOptions): LoggedEnds {
  const counts = { abnormal: 0, clean: 0, bySignal: 0 };
  let lastAt: string | undefined;
  for (const line of text.split('\n')) {
    const [, at = '', message = ''] = timed.exec(line) ?? [];
    // A line without a time compares as the earliest one.
    if (at <= after) continue;
    lastAt = at;
    const kind = endIn(message, { name, signal });
    if (kind !== undefined) counts[kind] += 1;
  }
  return { ...counts, lastAt };
}

/** @returns undefined for a line that does not report an end of this process */
function endIn(
  message: string,
  { name, signal }: Pick<LogOptions, 'name' | 'signal'>,
): 'abnormal' | 'clean' | 'bySignal' | undefined {
  if (message.startsWith(`gave up: ${name} `)) return 'abnormal';
  if (message.startsWith(`stopped: ${name} (`)) return 'clean';
  if (!message.startsWith(`exited: ${name} (`)) return undefined;
  if (signal !== undefined && message.endsWith(` (terminated by SIG${signal}; not expected)`))
    return 'bySignal';
  return message.endsWith('; not expected)') ? 'abnormal' : 'clean';
}
