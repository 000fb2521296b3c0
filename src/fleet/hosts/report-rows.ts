// What a report is in rows: of its bundles, labels and outcomes, and what tells a keepalive from news. Pure.
import { createHash } from 'node:crypto';
import type { FleetReport } from '../../core/fleet/report.js';
import type { HostBundleRow, OutcomeRow, Tables } from '../store/tables.js';

type LabelRow = Tables['host_labels'];

/** A keepalive says the same as the report before it, except for its time, and has no outcome. */
export function stateDigest({ atMs: _, outcomes: __, ...state }: FleetReport): string {
  return createHash('sha256').update(JSON.stringify(state)).digest('hex');
}

export function bundleRows(keyId: string, report: FleetReport): HostBundleRow[] {
  return report.bundles.map(({ bundle, channel, active, offered }) => ({
    key_id: keyId,
    repository: report.root?.sha256 ?? '',
    bundle,
    channel,
    serial: active?.serial ?? 0,
    manifest: active?.manifest ?? '',
    state: active?.state ?? 'none',
    since_ms: active?.sinceMs ?? 0,
    bake: active?.bake ?? '',
    offered_serial: offered?.serial ?? 0,
    offered_state: offered?.state ?? '',
    offered_code: offered?.code ?? '',
    offered_at_ms: offered?.atMs ?? 0,
    offered_line: printable(offered?.line ?? ''),
  }));
}

/** Labels that the token forces come after, and win. */
export function labelRows(
  keyId: string,
  said: Readonly<Record<string, string>>,
  forced: Readonly<Record<string, string>>,
): LabelRow[] {
  return Object.entries({ ...said, ...forced }).map(([name, value]) => ({ key_id: keyId, name, value }));
}

export function outcomeRows(keyId: string, report: FleetReport, receivedAtMs: number): OutcomeRow[] {
  return report.outcomes.map(({ n, atMs, trigger, outcome, code, bundles }) => ({
    key_id: keyId,
    n,
    at_ms: atMs,
    received_at_ms: receivedAtMs,
    trigger,
    outcome,
    code: code ?? '',
    bundles: JSON.stringify(bundles),
  }));
}

export interface RowDifference<T> {
  readonly gone: T[];
  /** As they were, and as they are now: those that were not there are only among the second. */
  readonly replaced: T[];
  readonly changed: T[];
}

/** @returns what of the old rows is gone, and what of the new ones is other than before, by the key of a row */
export function rowDifference<T extends object>(
  before: readonly T[],
  after: readonly T[],
  keyOf: (row: T) => string,
): RowDifference<T> {
  const old = new Map(before.map((row) => [keyOf(row), row]));
  const replaced: T[] = [];
  const changed: T[] = [];
  for (const row of after) {
    const key = keyOf(row);
    const was = old.get(key);
    old.delete(key);
    if (was !== undefined && isSame(was, row)) continue;
    changed.push(row);
    if (was !== undefined) replaced.push(was);
  }
  return { gone: [...old.values()], replaced, changed };
}

/** Of two rows with the same columns. */
function isSame<T extends object>(a: T, b: T): boolean {
  for (const name in b) if (a[name] !== b[name]) return false;
  return true;
}

/** A checker's line is of somebody else: no column holds a control character. */
function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ');
}
