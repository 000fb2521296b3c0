// What supervisord writes into its own log about ends of its processes. Pure. The log alone distinguishes an
// unexpected exit from a stop that somebody asked for, once the process runs again.

export interface LoggedEnds {
  readonly abnormal: number;
  readonly clean: number;
  /** Time of the last line, as supervisord writes it; undefined where there was no line. */
  readonly lastAt: string | undefined;
}

const timed = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) [A-Z]{4} (.*)$/;

export interface LogReading {
  /** Of the process, without its group. */
  readonly name: string;
  /** Lines up to this time were counted before; times of one log compare as texts. */
  readonly after: string;
  /** The one that Writ sends, as HUP: a process that starts may not handle it yet, and the release is not at fault. */
  readonly signal: string | undefined;
}

/** @param text the end of supervisord's log; its first line may be cut */
export function parseSupervisordLog(text: string, { name, after, signal }: LogReading): LoggedEnds {
  let [abnormal, clean] = [0, 0];
  let lastAt: string | undefined;
  for (const line of text.split('\n')) {
    const [, at = '', message = ''] = timed.exec(line) ?? [];
    if (at === '' || at <= after) continue;
    lastAt = at;
    if (message.startsWith(`exited: ${name} (`)) {
      const isOwn = signal !== undefined && message.endsWith(` (terminated by SIG${signal}; not expected)`);
      if (message.endsWith('; not expected)') && !isOwn) abnormal += 1;
      else clean += 1;
    }
    if (message.startsWith(`gave up: ${name} `)) abnormal += 1;
    if (message.startsWith(`stopped: ${name} (`)) clean += 1;
  }
  return { abnormal, clean, lastAt };
}
