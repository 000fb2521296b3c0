// Computes the release intervals of one host after a report: new, ended and confirmed ones. Pure. Times are those of the server's
// clock: the skew of the report corrects times of the host, and none is later than the report.

import { isActivation } from '../../core/cycle/sync-machine.js';
import type { OutcomeReport } from '../../core/fleet/report.js';
import type { HostBundleRow, IntervalRow } from '../store/tables.js';

export interface ReportedState {
  readonly keyId: string;
  readonly receivedAtMs: number;
  /** Clock of the host minus clock of the server. */
  readonly skewMs: number;
  /** Empty for a host that is not in the fleet any more. */
  readonly bundles: readonly HostBundleRow[];
  /** Outcomes that are not stored yet, in their order. */
  readonly outcomes: readonly OutcomeReport[];
}

/**
 * @param open intervals of the host without an end
 * @returns rows to write: new intervals, and changed ones of `open`
 */
export function changeIntervals(open: readonly IntervalRow[], reported: ReportedState): IntervalRow[] {
  const { receivedAtMs: nowMs } = reported;
  const written = new Map<string, IntervalRow>();
  const before = groupByBundle(open);
  const wanted = groupByBundle(wantedOf(reported));
  const activations = activationsOf(reported);
  for (const name of new Set([...before.keys(), ...wanted.keys()])) {
    const parts = { before: before.get(name) ?? {}, wanted: wanted.get(name) ?? {} };
    const active = { ...parts, activations: activations.get(name) ?? [] };
    for (const row of [...changeActive(active, nowMs), ...changeRefused(parts, nowMs)])
      written.set(rowKey(row), { ...row, written_ms: nowMs });
  }
  return [...written.values()];
}

/** At most one interval of each kind is open for a bundle and channel. */
type OfBundle = Partial<Record<IntervalRow['kind'], IntervalRow>>;

interface Parts {
  readonly before: OfBundle;
  readonly wanted: OfBundle;
}

interface Activation {
  readonly serial: number;
  readonly atMs: number;
}

function groupByBundle(rows: readonly IntervalRow[]): ReadonlyMap<string, OfBundle> {
  const groups = new Map<string, OfBundle>();
  for (const row of rows) groups.set(nameOf(row), { ...groups.get(nameOf(row)), [row.kind]: row });
  return groups;
}

/** Most bundles that an agent sends in one outcome. Without it a hostile host could write a row for each value of its report. */
const maxBundlesOfOutcome = 16;

function activationsOf(reported: ReportedState): ReadonlyMap<string, readonly Activation[]> {
  const found = new Map<string, Activation[]>();
  for (const { outcome, atMs, bundles } of reported.outcomes) {
    if (!isActivation(outcome)) continue;
    for (const { serial, ...name } of bundles.slice(0, maxBundlesOfOutcome)) {
      const known = found.get(nameOf(name)) ?? [];
      known.push({ serial, atMs: serverTime(atMs, reported) });
      found.set(nameOf(name), known);
    }
  }
  return found;
}

/** @returns the intervals of the host's current state, as if each began now */
function wantedOf(reported: ReportedState): IntervalRow[] {
  const { keyId, bundles, receivedAtMs } = reported;
  return bundles.flatMap((row) => {
    const common = {
      ...{ key_id: keyId, bundle: row.bundle, channel: row.channel },
      ...{ until_ms: 0, written_ms: receivedAtMs, merged: 1 },
    };
    const active: IntervalRow = {
      ...{
        ...common,
        kind: 'active',
        serial: row.serial,
        manifest: row.manifest,
        state: row.state,
        code: '',
      },
      since_ms: serverTime(row.since_ms, reported),
    };
    const refused: IntervalRow = {
      ...{ ...common, kind: 'refused', serial: row.offered_serial, manifest: '' },
      ...{
        state: row.offered_state,
        code: row.offered_code,
        since_ms: serverTime(row.offered_at_ms, reported),
      },
    };
    const isRefused = row.offered_state === 'refused' || row.offered_state === 'rolled-back';
    return [...(row.serial > 0 ? [active] : []), ...(isRefused ? [refused] : [])];
  });
}

/** Adds intervals for activations between two reports, for example during an outage of the server. */
function changeActive(
  { before: { active: before }, wanted: { active: wanted }, activations }: Parts & ActivationList,
  nowMs: number,
): IntervalRow[] {
  const passed = passedOf(activations, before?.serial, wanted?.serial);
  const isSame = before !== undefined && wanted !== undefined && isSameRelease(before, wanted);
  if (isSame && passed.length === 0)
    return before.state !== 'confirmed' && before.state !== wanted.state
      ? [{ ...before, state: wanted.state }]
      : [];
  const starts = [...passed.map(({ atMs }) => atMs), wanted?.since_ms ?? nowMs];
  const endOf = (at: number, sinceMs: number): number => Math.max(sinceMs, starts[at] ?? nowMs);
  const known = before ?? wanted;
  const rows = passed.flatMap(({ serial, atMs }, at): IntervalRow[] => {
    const times = { since_ms: atMs, until_ms: endOf(at + 1, atMs), merged: 1 };
    return known === undefined ? [] : [{ ...known, serial, manifest: '', state: '', ...times }];
  });
  const ended = before === undefined ? [] : [{ ...before, until_ms: endOf(0, before.since_ms) }];
  return [...ended, ...rows, ...(wanted === undefined ? [] : [wanted])];
}

interface ActivationList {
  /** Sorted by time. */
  readonly activations: readonly Activation[];
}

function changeRefused(
  { before: { refused: before }, wanted: { refused: wanted } }: Parts,
  nowMs: number,
): IntervalRow[] {
  const isSame =
    before !== undefined &&
    wanted?.serial === before.serial &&
    wanted.state === before.state &&
    wanted.code === before.code;
  if (isSame) return [];
  const ended = before === undefined ? [] : [{ ...before, until_ms: Math.max(before.since_ms, nowMs) }];
  return [...ended, ...(wanted === undefined ? [] : [wanted])];
}

/**
 * @param before serial that the host ran at its last report
 * @param wanted serial that the host runs now
 * @returns the activations between them, in order
 */
function passedOf(
  activations: readonly Activation[],
  before: number | undefined,
  wanted: number | undefined,
): readonly Activation[] {
  const changes = activations.filter(
    ({ serial }, at) => serial !== (at === 0 ? before : activations[at - 1]?.serial),
  );
  return changes.at(-1)?.serial === wanted ? changes.slice(0, -1) : changes;
}

/** Compares the manifest too, because different repositories can use one serial. */
function isSameRelease(before: IntervalRow, wanted: IntervalRow): boolean {
  return before.serial === wanted.serial && before.manifest === wanted.manifest;
}

/** Longest age of a reported time, because the clock of a host may be in 1970. */
const longestMs = 400 * 86_400_000;

function serverTime(hostTimeMs: number, { skewMs, receivedAtMs }: ReportedState): number {
  return Math.min(receivedAtMs, Math.max(receivedAtMs - longestMs, Math.round(hostTimeMs - skewMs)));
}

function nameOf({ bundle, channel }: Pick<IntervalRow, 'bundle' | 'channel'>): string {
  return JSON.stringify([bundle, channel]);
}

export const intervalKey = [
  ...(['key_id', 'bundle', 'channel', 'kind', 'serial', 'manifest', 'code', 'since_ms'] as const),
] as const;

function rowKey(row: IntervalRow): string {
  return JSON.stringify(intervalKey.map((column) => row[column]));
}

const dayMs = 86_400_000;

/**
 * Merges the intervals of each release that began on the same day.
 *
 * @param rows ended intervals @returns at most as many rows, the newest first
 */
export function mergeIntervals(rows: readonly IntervalRow[]): IntervalRow[] {
  const merged = new Map<string, IntervalRow>();
  for (const row of rows) {
    const { bundle, channel, kind, serial, manifest, code, since_ms } = row;
    const day = Math.floor(since_ms / dayMs);
    const key = JSON.stringify([bundle, channel, kind, serial, manifest, code, day]);
    const known = merged.get(key);
    merged.set(key, known === undefined ? row : mergeTwo(known, row));
  }
  return [...merged.values()].sort((a, b) => b.since_ms - a.since_ms);
}

function mergeTwo(one: IntervalRow, other: IntervalRow): IntervalRow {
  return {
    ...one,
    state: one.state === 'confirmed' ? one.state : other.state,
    since_ms: Math.min(one.since_ms, other.since_ms),
    until_ms: Math.max(one.until_ms, other.until_ms),
    written_ms: Math.max(one.written_ms, other.written_ms),
    merged: one.merged + other.merged,
  };
}
