// Requests of operators that change the state of a host: `writ pause`, `writ resume` and `writ refusals forget`. Each is recorded in
// the history with the caller and the reason. Also ends pauses and waits that have expired.
import { WritError } from '../../core/errors.js';
import { describeCaller } from '../../core/names.js';
import type { PauseResult, RefusalsResult, ResumeResult } from '../../core/protocol/control-protocol.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { recordEvent } from '../job/record.js';
import { listRefusals } from '../report/refusal-status.js';
import { endPauseWhenOver, type PauseRequest, pause, pauseText, resume } from '../select/pause.js';
import { endWaitsThatAreOver } from '../select/waits.js';
import type { Host } from '../state/host.js';
import { matchesChoice, type RefusalChoice } from '../state/refusal-rules.js';
import { removeChosenRefusals } from '../state/refusals.js';
import { dropBlockedRestore } from '../state/restore-memory.js';

/**
 * Begins a pause, or changes the end and the reason of the present one, and records that in the history.
 * @throws WritError as pause
 */
export function handlePause(host: Host, request: PauseRequest): PauseResult {
  const result = pause(host, request);
  const { pause: begun } = result;
  recordEvent(host, {
    ...{ trigger: 'pause', by: request.by, reason: pauseText(request), pause: begun },
    problems: [],
  });
  return result;
}

/**
 * Ends the pause, the holds and the block, and records that in the history. Where nothing was to end, the result has
 * an empty list and the history no entry.
 * @param by the operator, as the history names the caller
 * @throws WritError STATE_DAMAGED, DISK_*
 */
export function handleResume(host: Host, by: string): ResumeResult {
  const result = resume(host);
  if (result.ended.some(({ kind }) => kind === 'block'))
    dropBlockedRestore(host, { active: activeGenerationNumber(host.paths), shouldNotify: true });
  const ended = result.ended.map((one) => `${one.kind} of ${one.what}`).join(', ');
  const event = { trigger: 'pause', by, reason: `ended: ${ended}`, pause: 'none', problems: [] } as const;
  if (ended !== '') recordEvent(host, event);
  return result;
}

/**
 * Records in the history that an operator accepted a new state directory.
 * @param by the operator, as the history names the caller
 * @returns the result with this entry
 */
export function recordNewState(host: Host, { ended, ...result }: ResumeResult, by: string): ResumeResult {
  const { state } = host.paths;
  recordEvent(host, {
    trigger: 'pause',
    by,
    reason: `accepted as a new state directory: ${state}`,
    problems: [],
  });
  return { ...result, ended: [...ended, { kind: 'new-state', what: state }] };
}

/** @returns the removed refusals. @throws WritError USAGE if no refusal of the named release exists; STATE_DAMAGED, DISK_* */
export function handleForget(host: Host, { by, ...choice }: RefusalChoice & { by: string }): RefusalsResult {
  const known = listRefusals(host);
  const refusals = known.refusals.filter((one) => matchesChoice(one, choice));
  if (refusals.length === 0 && choice.bundle !== undefined) {
    const what = `${choice.bundle}${choice.serial === undefined ? '' : ` ${choice.serial}`}`;
    throw new WritError('USAGE', `no refusal of ${what} is remembered`, {
      facts: { ...choice },
      hint: '`writ refusals` lists the remembered ones.',
    });
  }
  removeChosenRefusals(host, choice);
  const named = refusals.slice(0, maxNamed).map(({ bundle, serial }) => `${bundle} ${serial}`);
  const more = refusals.length > maxNamed ? ` and ${refusals.length - maxNamed} more` : '';
  const reason = `refusals forgotten: ${named.join(', ')}${more}`;
  if (refusals.length > 0) recordEvent(host, { trigger: 'forget', by, reason, problems: [] });
  return { ...known, refusals };
}

const maxNamed = 20;

/** Ends an expired pause and expired waits. @returns true if one ended, so that a cycle should run */
export function endExpiredWaits(host: Host): boolean {
  const over = endPauseWhenOver(host);
  const isSettled = endWaitsThatAreOver(host);
  if (over === undefined) return isSettled;
  const { by, reason } = over;
  const ended = `the pause by ${describeCaller(by)} is over: ${reason}`;
  recordEvent(host, { trigger: 'pause', by: 'writ', reason: ended, pause: 'none', problems: [] });
  return true;
}
