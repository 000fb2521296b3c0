// `writ pause` and `writ resume`: no release is activated until the given time, or until a person resumes. Owns the pause in the
// ledger. Refreshes, scans, status, and notifications of the active generation go on.

import { WritError } from '../../core/errors.js';
import { describeCaller } from '../../core/names.js';
import type { HistoryEntry, PauseResult, ResumeResult } from '../../core/protocol/control-protocol.js';
import { utcTimeText } from '../../core/text/iso-time.js';
import { withRefusedPending } from '../notify/worker-ledger.js';
import type { Host } from '../state/host.js';
import { type Ledger, ledgerSection, type Pause } from '../state/ledger.js';
import { withoutRestrictions } from './holds-and-blocks.js';
import { heldBySilence, withoutSilence } from './waits.js';
import { pauseNow } from './why-not-now-rules.js';

const changePause = ledgerSection('pause');

export interface PauseRequest {
  readonly by: string;
  readonly reason: string;
  /** Epoch milliseconds; left out: until `writ resume`. */
  readonly untilMs?: number;
}

const maxPauseMs = 366 * 86_400_000;

/**
 * Pauses the host; a pause that holds already gets this end and this reason.
 * @throws WritError USAGE for an end that is over, or more than a year away; STATE_DAMAGED, DISK_*
 */
export function pause(host: Pick<Host, 'ledger' | 'clock'>, request: PauseRequest): PauseResult {
  const { by, reason, untilMs } = request;
  const atMs = host.clock.nowMs();
  if (untilMs !== undefined && (untilMs <= atMs || untilMs > atMs + maxPauseMs)) {
    throw new WritError('USAGE', 'a pause must end in the future, and within a year', {
      hint: 'Give another end.',
      facts: {
        expected: `between ${utcTimeText(atMs)} and ${utcTimeText(atMs + maxPauseMs)}`,
        actual: utcTimeText(untilMs),
      },
    });
  }
  const next: Pause = { by, reason, atMs, ...(untilMs === undefined ? {} : { untilMs }) };
  host.ledger.write(changePause(host.ledger.read(), { pause: next }));
  return { schema: 1, type: 'pause.result', pause: next };
}

/** @returns the text of the pause for the history */
export function pauseText({ reason, untilMs }: Pick<PauseRequest, 'reason' | 'untilMs'>): string {
  const end = untilMs === undefined ? 'until it is resumed' : `until ${utcTimeText(untilMs)}`;
  return `paused ${end}: ${reason}`;
}

/**
 * For a ledger that is made again, because its loss must not end a pause. Lines of older versions have the pause only as text, and are
 * ignored; such a pause ends within a year.
 * @param history newest first
 */
export function withPauseOf(ledger: Ledger, history: readonly HistoryEntry[]): Ledger {
  const last = history.find(({ pause }) => pause === 'none' || isPause(pause))?.pause;
  return isPause(last) ? changePause(ledger, { pause: last }) : ledger;
}

/** Judges a line of the history, because a damaged one must not make a ledger that cannot be read. */
function isPause(value: unknown): value is Pause {
  const { by, reason, atMs, untilMs = 0 } = (value ?? {}) as Record<string, unknown>;
  return [by, reason].every((one) => typeof one === 'string') && [atMs, untilMs].every(Number.isSafeInteger);
}

/** True while a pause is in force. */
export function isPaused({ ledger, clock }: Pick<Host, 'ledger' | 'clock'>): boolean {
  return pauseNow(ledger.read(), clock.nowMs()) !== undefined;
}

/** Removes a pause that is over. @returns that pause; undefined while it is in force, and without one */
export function endPauseWhenOver({ ledger, clock }: Pick<Host, 'ledger' | 'clock'>): Pause | undefined {
  const known = ledger.read();
  const { pause: noted } = known;
  if (noted === undefined || pauseNow({ pause: noted }, clock.nowMs()) !== undefined) return undefined;
  ledger.write(changePause(known, { pause: undefined }));
  return noted;
}

/**
 * `writ resume`: ends a pause, every hold and a block, so that the next cycle takes the offered releases. Workers that refused, and
 * so caused the block, are notified again before anything is judged by their refusals.
 */
export function resume(host: Pick<Host, 'ledger' | 'clock'>): ResumeResult {
  const ledger = host.ledger.read();
  const { blocked, pause } = ledger;
  const holds = ledger.holds.map((one) => ({ kind: 'hold' as const, what: `${one.bundle} ${one.serial}` }));
  const block = blocked === undefined ? [] : [{ kind: 'block' as const, what: blocked.reason }];
  const paused =
    pause === undefined
      ? []
      : [{ kind: 'pause' as const, what: `${describeCaller(pause.by)}: ${pause.reason}` }];
  const silent = heldBySilence(ledger).map((what) => ({ kind: 'hold' as const, what }));
  const free = withoutSilence(withoutRestrictions(changePause(ledger, { pause: undefined })));
  host.ledger.write(blocked === undefined ? free : withRefusedPending(free, host.clock.nowMs()));
  return { schema: 1, type: 'resume.result', ended: [...paused, ...holds, ...silent, ...block] };
}

/** @returns whether a scan may repair what it finds; not in a pause, because a repair notifies workers too */
export function repairNow(host: Pick<Host, 'ledger' | 'clock' | 'config'>): 'yes' | 'no' {
  return isPaused(host) ? 'no' : host.config.scrub.repair;
}
