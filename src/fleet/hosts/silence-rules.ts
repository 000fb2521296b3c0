// Decides host liveness. A host is silent after two granted intervals without a report, if its last report did not announce its end
// and the fleet accepted reports all this time. Pure.
import type { FleetRow, HostRow } from '../store/tables.js';

/** Longest delay of a stored last-seen time, because keepalives are written in batches. */
export const lastSeenLagMs = 15_000;
/** If no server recorded for this time that it accepts reports, the fleet did not accept any. */
export const acceptingGapMs = 30_000;
const ephemeralSilenceMs = 24 * 3_600_000;

type Host = Pick<HostRow, 'state' | 'kind' | 'agent' | 'last_seen_ms' | 'every_ms' | 'ephemeral'>;
type Fleet = Pick<FleetRow, 'accepting_since_ms' | 'accepting_until_ms'>;

/** @returns whether the host is silent; false while the fleet does not accept reports */
export function isHostSilent(host: Host, fleet: Fleet, nowMs: number): boolean {
  return host.state === 'accepted' && host.agent === 'run' && silentMs(host, fleet, nowMs) > 0;
}

/** @returns whether the liveness is unknown: no report came in two intervals, but the fleet did not accept reports all this time */
export function isUnjudged(host: Host, fleet: Fleet, nowMs: number): boolean {
  const always = { accepting_since_ms: 0, accepting_until_ms: nowMs };
  return isHostSilent(host, always, nowMs) && !isHostSilent(host, fleet, nowMs);
}

/** @returns whether an ephemeral host sent no report for a day, whatever its last report stated */
export function isGone(host: Host, fleet: Fleet, nowMs: number): boolean {
  const quietMs = nowMs - Math.max(host.last_seen_ms, fleet.accepting_since_ms);
  const isAccepting = nowMs - fleet.accepting_until_ms <= acceptingGapMs;
  return host.ephemeral === 1 && host.state === 'accepted' && isAccepting && quietMs > ephemeralSilenceMs;
}

/** @returns milliseconds since the end of the host's two intervals, whatever its last report stated; 0 before that end */
export function silentMs(host: Pick<Host, 'last_seen_ms' | 'every_ms'>, fleet: Fleet, nowMs: number): number {
  if (nowMs - fleet.accepting_until_ms > acceptingGapMs) return 0;
  const lastSeenMs = Math.max(host.last_seen_ms, fleet.accepting_since_ms);
  return Math.max(0, nowMs - lastSeenMs - 2 * host.every_ms - lastSeenLagMs);
}
