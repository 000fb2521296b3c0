// What a person tells a host to do from now on, and takes back: `writ pause` and `writ resume`, each noted in the history
// with who and why; and the end of a pause that nobody has to take back.
import type { PauseResult, ResumeResult } from '../../core/protocol/control-protocol.js';
import { recordEvent } from '../job/record.js';
import { endPauseWhenOver, type PauseRequest, pause, resume } from '../select/pause.js';
import { endWaitsThatAreOver } from '../select/waits.js';
import type { Host } from '../state/host.js';

/** @throws WritError as pause */
export function orderPause(host: Host, request: PauseRequest): PauseResult {
  const result = pause(host, request);
  const { by, reason, untilMs } = request;
  const end = untilMs === undefined ? 'until it is resumed' : `until ${new Date(untilMs).toISOString()}`;
  recordEvent(host, { trigger: 'pause', by, reason: `paused ${end}: ${reason}`, problems: [] });
  return result;
}

/** @throws WritError STATE_DAMAGED, DISK_* */
export function orderResume(host: Host, by: string): ResumeResult {
  const result = resume(host);
  const ended = result.ended.map((one) => `${one.kind} of ${one.what}`).join(', ');
  if (ended !== '') recordEvent(host, { trigger: 'pause', by, reason: `ended: ${ended}`, problems: [] });
  return result;
}

/** @returns true when something that waited for a time may be tried now: a cycle is to look at it again */
export function isWaitOver(host: Host): boolean {
  const over = endPauseWhenOver(host);
  const isSettled = endWaitsThatAreOver(host);
  if (over === undefined) return isSettled;
  const { by, reason } = over;
  const ended = `the pause by ${by} is over: ${reason}`;
  recordEvent(host, { trigger: 'pause', by: 'writ', reason: ended, problems: [] });
  return true;
}
