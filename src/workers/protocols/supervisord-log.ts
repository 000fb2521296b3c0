// What supervisord writes into its own log about ends of its processes. Pure. The log alone distinguishes an
// unexpected exit from a stop that somebody asked for, once the process runs again.

export interface LoggedEnds {
  readonly abnormal: number;
  readonly clean: number;
  /** Time of the last line, as supervisord writes it; undefined where there was no line. */
  readonly lastAt: string | undefined;
}

const timed = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) [A-Z]{4} (.*)$/;

/**
 * @param text the end of supervisord's log; its first line may be cut
 * @param name of the process, without its group
 * @param after lines up to this time were counted before; times of one log compare as texts
 */
export function parseSupervisordLog(text: string, name: string, after: string): LoggedEnds {
  let [abnormal, clean] = [0, 0];
  let lastAt: string | undefined;
  for (const line of text.split('\n')) {
    const [, at = '', message = ''] = timed.exec(line) ?? [];
    if (at === '' || at <= after) continue;
    lastAt = at;
    if (message.startsWith(`exited: ${name} (`)) {
      if (message.endsWith('; not expected)')) abnormal += 1;
      else clean += 1;
    }
    if (message.startsWith(`gave up: ${name} `)) abnormal += 1;
    if (message.startsWith(`stopped: ${name} (`)) clean += 1;
  }
  return { abnormal, clean, lastAt };
}
