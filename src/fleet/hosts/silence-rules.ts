// When a host counts as silent: two granted intervals without a word while the server was accepting, and its last word was
// that it runs. Pure; the server's own absence is never a host's silence.
import type { FleetRow, HostRow } from '../store/tables.js';

/** What a last-seen may be behind, since keepalives are written together. */
export const lastSeenLagMs = 15_000;
/** Without a word of any server for so long the fleet was not accepting. */
export const acceptingGapMs = 30_000;
const ephemeralSilenceMs = 24 * 3_600_000;

type Host = Pick<HostRow, 'state' | 'kind' | 'agent' | 'last_seen_ms' | 'every_ms' | 'ephemeral'>;
type Fleet = Pick<FleetRow, 'accepting_since_ms' | 'accepting_until_ms'>;

/** @returns whether the host is silent; nobody is while the fleet does not accept */
export function isSilent(host: Host, fleet: Fleet, nowMs: number): boolean {
  return host.state === 'accepted' && host.agent === 'run' && silentMs(host, fleet, nowMs) > 0;
}

/** It would be silent, had the fleet accepted for its two intervals: it may have spoken to nobody. */
export function isUnjudged(host: Host, fleet: Fleet, nowMs: number): boolean {
  const always = { accepting_since_ms: 0, accepting_until_ms: nowMs };
  return isSilent(host, always, nowMs) && !isSilent(host, fleet, nowMs);
}

/** An ephemeral host that said nothing for a day is gone, whatever its last word was. */
export function isGone(host: Host, fleet: Fleet, nowMs: number): boolean {
  const quietMs = nowMs - Math.max(host.last_seen_ms, fleet.accepting_since_ms);
  const isAccepting = nowMs - fleet.accepting_until_ms <= acceptingGapMs;
  return host.ephemeral === 1 && host.state === 'accepted' && isAccepting && quietMs > ephemeralSilenceMs;
}

/** How long beyond its two intervals, whatever its last word was; 0 while it may still speak. */
export function silentMs(host: Pick<Host, 'last_seen_ms' | 'every_ms'>, fleet: Fleet, nowMs: number): number {
  if (nowMs - fleet.accepting_until_ms > acceptingGapMs) return 0;
  const heardMs = Math.max(host.last_seen_ms, fleet.accepting_since_ms);
  return Math.max(0, nowMs - heardMs - 2 * host.every_ms - lastSeenLagMs);
}
