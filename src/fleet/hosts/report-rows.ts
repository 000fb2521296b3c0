// Converts a report to rows of bundles, labels and outcomes, and computes the digest that identifies a keepalive. Pure.
import { createHash } from 'node:crypto';
import type { FleetReport } from '../../core/fleet/report.js';
import type { HostBundleRow, OutcomeRow, Tables } from '../store/tables.js';

type LabelRow = Tables['host_labels'];

/** Digest of a report without its time and outcomes. A keepalive has the digest of the report before it, and no outcome. */
export function stateDigest({ atMs: _, outcomes: __, ...state }: FleetReport): string {
  return createHash('sha256').update(JSON.stringify(state)).digest('hex');
}

/**
 * @returns one row for each bundle of the report. A value that the report does not have is 0 or ''; a bundle without
 * an active release has the state `none`.
 */
export function reportBundleRows(keyId: string, report: FleetReport): HostBundleRow[] {
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

/**
 * Creates the rows of the labels of one host.
 * @param forced labels of the host's token; they override reported labels of the same name
 * @returns one row for each label name: the reported names first, then the further forced ones; empty without labels. With `{
 *   site: 'a' }` reported and `{ site: 'b' }` forced, the only row has the value `b`
 */
export function labelRows(
  keyId: string,
  reported: Readonly<Record<string, string>>,
  forced: Readonly<Record<string, string>>,
): LabelRow[] {
  return Object.entries({ ...reported, ...forced }).map(([name, value]) => ({ key_id: keyId, name, value }));
}

/** @returns one row for each outcome of the report; `code` is '' for an outcome without an error */
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
  /** Earlier versions of changed rows. A new row is only in `changed`. */
  readonly replaced: T[];
  readonly changed: T[];
}

/** Compares rows by their keys. @returns removed rows, earlier versions of changed rows, and changed or new rows */
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

/** Compares two rows of one table. */
function isSame<T extends object>(a: T, b: T): boolean {
  for (const name in b) if (a[name] !== b[name]) return false;
  return true;
}

/** Replaces control characters. The output of a check is not trusted, and no column may hold a control character. */
function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ');
}
