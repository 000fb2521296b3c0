// Decides which findings of a summary are alarms, and which alarms began, ended, or still have to be sent. Pure. There is no queue:
// pending notifications are the difference between current alarms and sent ones, so that they cannot accumulate.
import { createHash } from 'node:crypto';
import type { FleetFinding, FleetSummary } from '../../core/fleet/answers.js';
import { isNearEnd, knownRoles } from '../../core/fleet/fleet-summary.js';
import { isoTime } from '../../core/text/iso-time.js';
import type { AlarmRow } from '../store/tables.js';

export interface Alarm {
  /** Digest of the labels. It identifies an alarm. */
  readonly fingerprint: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly text: string;
  /** Host filter that lists the affected hosts. */
  readonly where: string;
}

export interface AlarmPlan {
  /** New, ended or resumed alarms, to be stored before they are sent. */
  readonly written: readonly AlarmRow[];
  /** Fingerprints of alarms that ended before they were sent. */
  readonly gone: readonly string[];
  /** Alarms to send, in this order. */
  readonly untold: readonly AlarmRow[];
}

/** Bounds the alarms. Those of most hosts are retained, because one host can report any number of refused releases. */
const maxAlarms = 500;
/** An alarm that resumes within this time did not end, so that an unstable host does not notify repeatedly. */
export const resolveAfterMs = 60_000;

/** @returns the alarms of a fleet, the most severe first; none for a fleet without hosts */
export function alarmsOf(summary: FleetSummary): readonly Alarm[] {
  const { findings, fleet } = summary;
  const found = findings
    .filter(({ code }) => !['NO_HOSTS', 'ROLE_ENDS', 'ROLE_EXPIRED'].includes(code))
    .map((finding) => ({ finding, hosts: hostsOf(finding, summary) }))
    .toSorted((a, b) => b.hosts - a.hosts)
    .map(({ finding }) => alarm(fleet, finding, labelsOf(finding)));
  const all = [...rolesOf(summary), ...found];
  const gravest = (one: Alarm): number => (one.labels['severity'] === 'critical' ? 0 : 1);
  const known = new Map(all.map((one) => [one.fingerprint, one]));
  return [...known.values()].toSorted((a, b) => gravest(a) - gravest(b)).slice(0, maxAlarms);
}

type AlarmText = Pick<FleetFinding, 'code' | 'level' | 'text' | 'where'>;

function alarm(fleet: string, { code, level, text, where = '' }: AlarmText, more: Alarm['labels']): Alarm {
  const parts = code.toLowerCase().split('_');
  const name = parts.map((part) => (part[0] ?? '').toUpperCase() + part.slice(1)).join('');
  const labels = { alertname: `WritFleet${name}`, severity: level, fleet, ...more };
  const sorted = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const fingerprint = createHash('sha256').update(JSON.stringify(sorted)).digest('hex').slice(0, 16);
  return { fingerprint, labels, text, where };
}

/** Parses the filter. Names of bundles and channels have neither commas nor equals signs. */
function labelsOf({ where = '' }: Pick<FleetFinding, 'where'>): Record<string, string> {
  const pairs = where.split(',').map((pair) => pair.split('=') as [string, string?]);
  const shown = pairs.filter(([name]) => ['bundle', 'channel', 'serial'].includes(name));
  return Object.fromEntries(shown.map(([name, value = '']) => [name, value]));
}

function hostsOf(finding: FleetFinding, { offers }: FleetSummary): number {
  const { bundle, channel, serial } = labelsOf(finding);
  if (bundle === undefined) return Number.POSITIVE_INFINITY;
  return offers
    .filter((one) => one.bundle === bundle && one.channel === channel && String(one.serial) === serial)
    .reduce((sum, one) => sum + one.hosts, 0);
}

/** Makes alarms for each role, because the text of a finding has the remaining hours, which change. */
function rolesOf(summary: FleetSummary): Alarm[] {
  const { fleet, atMs } = summary;
  return knownRoles(summary).flatMap(({ role, name, expiresAtMs }) => {
    const at = isoTime(expiresAtMs) ?? 'at no time';
    if (expiresAtMs <= atMs) {
      const text = `${name} has expired (${at}): hosts accept nothing new`;
      return [alarm(fleet, { code: 'ROLE_EXPIRED', level: 'critical', text }, { role: name })];
    }
    if (!isNearEnd(role, expiresAtMs - atMs)) return [];
    return [
      alarm(fleet, { code: 'ROLE_ENDS', level: 'warning', text: `${name} ends ${at}` }, { role: name }),
    ];
  });
}

/**
 * Compares the stored alarms with those of the current summary. Only plans: the caller stores and sends.
 * @param summary the current one; while the liveness of a host is unknown, a stored alarm about silence continues
 * @returns `written`: rows that begin, end or resume now. `gone`: fingerprints of alarms that ended before they were sent.
 *   `untold`: the rows to send, the earliest first: alarms that were not sent, and sent ones that ended at least 60 s ago. All
 *   are empty if nothing changed and nothing is to be sent. Throws nothing
 */
export function planAlarms(stored: readonly AlarmRow[], summary: FleetSummary, nowMs: number): AlarmPlan {
  const now = new Map(alarmsOf(summary).map((one) => [one.fingerprint, one]));
  const known = new Set(stored.map(({ fingerprint }) => fingerprint));
  const isUnjudged = (row: AlarmRow): boolean =>
    summary.hosts.unjudged > 0 && labelsIn(row)['alertname'] === 'WritFleetSilent';
  const after = stored.map((row): AlarmRow => {
    if (now.has(row.fingerprint) || isUnjudged(row))
      return row.ends_at_ms === 0 ? row : { ...row, ends_at_ms: 0 };
    return row.ends_at_ms === 0 ? { ...row, ends_at_ms: nowMs } : row;
  });
  const begun = [...now.values()].filter(({ fingerprint }) => !known.has(fingerprint));
  const rows = [...after, ...begun.map((one) => rowOf(one, nowMs))];
  const isGone = (row: AlarmRow): boolean => row.told === '' && row.ends_at_ms !== 0;
  return {
    written: rows.filter((row) => !stored.includes(row) && !isGone(row)),
    gone: rows.filter(isGone).map(({ fingerprint }) => fingerprint),
    untold: rows.filter((row) => isPending(row, nowMs)).toSorted((a, b) => a.starts_at_ms - b.starts_at_ms),
  };
}

function rowOf({ fingerprint, labels, text, where }: Alarm, nowMs: number): AlarmRow {
  const columns = { labels: JSON.stringify(labels), summary: text.slice(0, 500), filter: where };
  return { fingerprint, ...columns, starts_at_ms: nowMs, ends_at_ms: 0, told: '' };
}

function isPending({ told, ends_at_ms: endsAtMs }: AlarmRow, nowMs: number): boolean {
  if (endsAtMs === 0) return told === '';
  return told === 'firing' && nowMs - endsAtMs >= resolveAfterMs;
}

/** @returns the labels of an alarm, such as `alertname`, by their names. The row contains them as JSON. */
export function labelsIn({ labels }: Pick<AlarmRow, 'labels'>): Readonly<Record<string, string>> {
  return JSON.parse(labels) as Record<string, string>;
}
