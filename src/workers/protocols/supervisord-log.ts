// What supervisord writes into its own log about ends of its processes. Pure. The log alone distinguishes an
// unexpected exit from a stop that somebody asked for, once the process runs again.

export interface LoggedEnds {
  readonly abnormal: number;
  readonly clean: number;
  /** By the signal that notifies: a process that does not listen to it yet ends, whatever its policy. */
  readonly bySignal: number;
  /** Time of the last line, as supervisord writes it; undefined where there was no line. */
  readonly lastAt: string | undefined;
}

interface LogOptions {
  readonly name: string;
  readonly after: string;
  readonly signal?: string | undefined;
}

const timed = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) [A-Z]{4} (.*)$/;

/**
 * @param text the end of supervisord's log; its first line may be cut
 * @param options.name of the process, without its group
 * @param options.after lines up to this time were counted before; times of one log compare as texts
 * @param options.signal that Writ notifies with, as HUP
 */
export function parseSupervisordLog(text: string, { name, after, signal }: LogOptions): LoggedEnds {
  const counts = { abnormal: 0, clean: 0, bySignal: 0 };
  let lastAt: string | undefined;
  for (const line of text.split('\n')) {
    const [, at = '', message = ''] = timed.exec(line) ?? [];
    // A line without a time is before any.
    if (at <= after) continue;
    lastAt = at;
    const kind = endIn(message, { name, signal });
    if (kind !== undefined) counts[kind] += 1;
  }
  return { ...counts, lastAt };
}

/** @returns undefined for any line that is no end of this process */
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
