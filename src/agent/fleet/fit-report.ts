// Truncates a host report to its limits. Drops in this order: outputs, lines, bundles of outcomes, outcomes (the next report
// has them), then the longest list. Pure functions. A finding marks a truncated report, so that a server does not take it for
// complete.
import { type FleetReport, fleetBounds } from '../../core/fleet/report.js';

/** The finding of a truncated report. It is not an error of the host. */
export const truncatedFinding = 'REPORT_TRUNCATED';

/** In place of a code that is in no table of this version, so that a fleet server receives only known ones. */
export const unnamedFinding = 'OTHER';

const maxRoles = 100;

/** Truncates a report to its limits. @param isCut true if outcomes were dropped before, which also needs the finding */
export function fitReport(report: FleetReport, isCut: boolean): FleetReport {
  const bounded = withinCounts(report);
  const isShortened = isCut || lengthOf(bounded) < lengthOf(report);
  let fits = isShortened ? marked(bounded) : withFindings(bounded, bounded.findings);
  for (const step of steps) {
    if (lengthOf(fits) <= fleetBounds.maxReportBytes) return fits;
    fits = marked(step(fits));
  }
  while (lengthOf(fits) > fleetBounds.maxReportBytes) fits = marked(halved(fits));
  return fits;
}

function lengthOf(report: FleetReport): number {
  return Buffer.byteLength(JSON.stringify(report));
}

function withinCounts(report: FleetReport): FleetReport {
  const { maxLabels, maxNameLength, maxBundles, maxGroups, maxOutcomes } = fleetBounds;
  const labels = Object.entries(report.labels).slice(0, maxLabels);
  return {
    ...report,
    labels: Object.fromEntries(labels.map(([name, value]) => [name, value.slice(0, maxNameLength)])),
    trust: report.trust.slice(0, maxRoles),
    bundles: report.bundles.slice(0, maxBundles),
    groups: report.groups.slice(0, maxGroups),
    outcomes: report.outcomes.slice(0, maxOutcomes),
  };
}

function marked(report: FleetReport): FleetReport {
  const others = report.findings.filter((code) => code !== truncatedFinding);
  return withFindings(report, [...others.slice(0, fleetBounds.maxFindings - 1), truncatedFinding]);
}

function withFindings(report: FleetReport, findings: readonly string[]): FleetReport {
  if (findings.length > fleetBounds.maxFindings) return marked(report);
  return { ...report, findings };
}

const steps: readonly ((report: FleetReport) => FleetReport)[] = [
  (report) => withOffered(report, ({ output: _, ...offered }) => offered),
  (report) => withOffered(report, ({ line: _, ...offered }) => offered),
  (report) => ({
    ...report,
    outcomes: report.outcomes.map((one) => ({ ...one, bundles: one.bundles.slice(0, 1) })),
  }),
  (report) => ({ ...report, outcomes: report.outcomes.slice(0, 10) }),
];

type Offered = NonNullable<FleetReport['bundles'][number]['offered']>;

function withOffered(report: FleetReport, less: (offered: Offered) => Offered): FleetReport {
  const bundles = report.bundles.map((one) =>
    one.offered === undefined ? one : { ...one, offered: less(one.offered) },
  );
  return { ...report, bundles };
}

function halved(report: FleetReport): FleetReport {
  const half = <T>(list: readonly T[]): readonly T[] => list.slice(0, Math.floor(list.length / 2));
  return {
    ...report,
    labels: Object.fromEntries(half(Object.entries(report.labels))),
    trust: half(report.trust),
    bundles: half(report.bundles),
    groups: half(report.groups),
  };
}
