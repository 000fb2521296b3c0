// Compares status reports: a report without the members that every poll changes, such as ages and times. A caller that writes or
// shows a report only after a change compares two fingerprints.
import type { BakeStatus, StatusReport } from './status.js';

/** @returns a text that is equal for two reports without a relevant change between them */
export function fingerprintStatus(report: StatusReport): string {
  const {
    atMs: _,
    nextPollAtMs: _next,
    downloading: _now,
    freshness,
    last,
    fleet,
    logLosses,
    bundles,
    observation,
    ...rest
  } = report;
  const { state, failing, refused, expired, overdueSinceMs } = freshness;
  // Only the first of equal consecutive failures is a change.
  const codes = [failing?.code, refused?.code, expired?.role, overdueSinceMs === undefined];
  const clock = rest.clock === undefined ? 'right' : 'behind';
  const scrub = rest.scrub === undefined ? [] : [rest.scrub.outcome, rest.scrub.found];
  // Another stored report is not a change.
  const fleetState = [fleet?.url, fleet?.state, fleet?.problem?.code];
  // Only the first lost line of a log is a change.
  const lost = logLosses?.code;
  // The end of an observation moves with each one.
  // The time that is left of a bake time changes at every poll.
  const bakeStates = bundles.map((one) =>
    one.bake === undefined ? one : { ...one, bake: withoutTimeLeft(one.bake) },
  );
  return JSON.stringify({
    ...rest,
    bakeStates,
    observed: observation?.bundles,
    scrub,
    clock,
    fleetState,
    lost,
    freshness: state,
    codes,
    outcome: last?.outcome,
  });
}

function withoutTimeLeft({ leftMs: _, ...bake }: BakeStatus): Omit<BakeStatus, 'leftMs'> {
  return bake;
}
