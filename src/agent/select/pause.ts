// `writ pause`: no release is activated until an end that was given, or `writ resume`. Owns the pause in the ledger and
// what it stops; refreshes, looks over the disk, status and the telling of what is active already go on.

import { WritError } from '../../core/errors.js';
import type { PauseResult } from '../../core/protocol/control-protocol.js';
import type { Host } from '../state/host.js';
import type { Ledger, Pause } from '../state/ledger.js';

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
    throw new WritError('USAGE', 'a pause ends in the future, and within a year', {
      hint: 'Give another end.',
      facts: {
        expected: `between ${timeText(atMs)} and ${timeText(atMs + maxPauseMs)}`,
        actual: timeText(untilMs),
      },
    });
  }
  const next: Pause = { by, reason, atMs, ...(untilMs === undefined ? {} : { untilMs }) };
  host.ledger.write({ ...host.ledger.read(), pause: next });
  return { schema: 1, type: 'pause.result', pause: next };
}

/** What a person typed may lie beyond every calendar. */
function timeText(atMs: number): string {
  const time = new Date(atMs);
  return Number.isNaN(time.getTime()) ? `${atMs} ms` : time.toISOString();
}

/** @returns the pause that holds now; one that has come to its end holds no more, whether or not anybody noted it */
export function pauseNow(ledger: Pick<Ledger, 'pause'>, nowMs: number): Pause | undefined {
  const { pause: noted } = ledger;
  return noted?.untilMs !== undefined && noted.untilMs <= nowMs ? undefined : noted;
}

/** True while a pause holds. */
export function isPaused({ ledger, clock }: Pick<Host, 'ledger' | 'clock'>): boolean {
  return pauseNow(ledger.read(), clock.nowMs()) !== undefined;
}

/** Forgets a pause that is over. @returns it, or undefined while it holds or where there is none */
export function endPauseWhenOver({ ledger, clock }: Pick<Host, 'ledger' | 'clock'>): Pause | undefined {
  const { pause: noted, ...rest } = ledger.read();
  if (noted === undefined || pauseNow({ pause: noted }, clock.nowMs()) !== undefined) return undefined;
  ledger.write(rest);
  return noted;
}

/** @returns the error of what waits, as `dns-edge 42`; undefined where nothing is paused */
export function pausedError(host: Pick<Host, 'ledger' | 'clock'>, what: string): WritError | undefined {
  const held = pauseNow(host.ledger.read(), host.clock.nowMs());
  if (held === undefined) return undefined;
  const { by, reason, atMs: since, untilMs } = held;
  const end = untilMs === undefined ? 'until writ resume' : `until ${new Date(untilMs).toISOString()}`;
  return new WritError('ACTIVATION_PAUSED', `${what} waits: paused by ${by} ${end}: ${reason}`, {
    facts: { by, reason, since, ...(untilMs === undefined ? {} : { untilMs }) },
  });
}

/** What a look over the disk may do by itself: a repair moves workers too. */
export function repairNow(host: Pick<Host, 'ledger' | 'clock' | 'config'>): 'yes' | 'no' {
  return isPaused(host) ? 'no' : host.config.scrub.repair;
}
