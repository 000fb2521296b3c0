// When a status report says something new: the report without what changes at every poll by itself, as ages and times.
// Pure. Used wherever a report is written or shown only when there is news.
import type { BakeStatus, StatusReport } from './status.js';

/** @returns equal texts for two reports of which the second tells nothing new */
export function statusNews(report: StatusReport): string {
  const {
    atMs: _,
    nextPollAtMs: _next,
    downloading: _now,
    freshness,
    last,
    fleet,
    logLosses,
    bundles,
    ...rest
  } = report;
  const { state, failing, refused, expired, overdueSinceMs } = freshness;
  // The first failure of a kind is news, the next ones like it are not.
  const codes = [failing?.code, refused?.code, expired?.role, overdueSinceMs === undefined];
  const clock = rest.clock === undefined ? 'right' : 'behind';
  const scrub = rest.scrub === undefined ? [] : [rest.scrub.outcome, rest.scrub.found];
  // That a report was stored, again, is none either.
  const told = [fleet?.url, fleet?.state, fleet?.problem?.code];
  // The first lost line of a log is news, the next ones are not.
  const lost = logLosses?.code;
  // The time that is left of a bake time passes by itself.
  const settling = bundles.map((one) =>
    one.bake === undefined ? one : { ...one, bake: withoutLeft(one.bake) },
  );
  return JSON.stringify({
    ...rest,
    settling,
    scrub,
    clock,
    told,
    lost,
    freshness: state,
    codes,
    outcome: last?.outcome,
  });
}

function withoutLeft({ leftMs: _, ...bake }: BakeStatus): Omit<BakeStatus, 'leftMs'> {
  return bake;
}
