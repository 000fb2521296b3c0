// Converts a host filter to conditions of a query. Every value is a bound parameter, never part of the SQL text. Only a filter for
// retired hosts finds them. Owns the meaning of each state of a filter in rows.
import type { Expression, ExpressionBuilder, Kysely } from 'kysely';
import type { BundleFilter, HostFilter } from '../../core/fleet/host-filter.js';
import { acceptingGapMs, lastSeenLagMs } from '../hosts/silence-rules.js';
import type { Tables } from '../store/tables.js';
import type { Asking } from './host-lines.js';
import { releaseName } from './standing-query.js';

export type Builder = ExpressionBuilder<Tables, 'hosts'>;
type Condition = ReturnType<Builder['and']>;

type At = Omit<Asking, 'role' | 'views'>;

/**
 * The rule of silence-rules.ts as SQL, with the same bounds.
 * @param at the present time and the time since when the fleet accepts reports
 */
export function isSilentRow(eb: Builder, at: At): Condition {
  return eb.and([isOverdueRow(eb, at), couldReportRow(eb, at)]);
}

/** @returns hosts with unknown liveness. Each is judged by its own interval: a host with a long one does not affect others. */
export function hasUnknownLivenessRow(eb: Builder, at: At): Condition {
  return eb.and([isOverdueRow(eb, at), eb.not(couldReportRow(eb, at))]);
}

/** Hosts that report critical health, without blocked hosts, which have their own finding, and without outdated reports. */
export function isCriticalRow(eb: Builder, at: At): Condition {
  return eb.and([
    eb('hosts.state', '=', 'accepted'),
    eb('hosts.health', '=', 'critical'),
    eb('hosts.kind', '=', 'writ'),
    eb('hosts.blocked', '=', 0),
    isReportOfNow(eb, at),
  ]);
}

/** Hosts that announced the end of their agent. */
export function isStoppedRow(eb: Builder): Condition {
  return eb.and([eb('hosts.state', '=', 'accepted'), eb('hosts.agent', '=', 'stop')]);
}

/**
 * @returns the condition that the last report of a host is current: the host did not announce its end and is not
 * silent
 */
export function isReportOfNow(eb: Builder, at: At): Condition {
  return eb.and([eb('hosts.agent', '!=', 'stop'), eb.not(isSilentRow(eb, at))]);
}

function isOverdueRow(eb: Builder, { nowMs }: At): Condition {
  return eb.and([
    eb('hosts.state', '=', 'accepted'),
    eb('hosts.agent', '=', 'run'),
    // The expression of the index by this time, so that the query reads overdue hosts only.
    eb(eb.parens(eb('hosts.last_seen_ms', '+', granted(eb))), '<', nowMs - lastSeenLagMs),
  ]);
}

/** @returns whether the fleet accepts reports, and has done so for the time in which this host had to report */
function couldReportRow(eb: Builder, { nowMs, fleet }: At): Condition {
  const isAccepting = nowMs - Number(fleet.accepting_until_ms) <= acceptingGapMs;
  const acceptedMs = nowMs - lastSeenLagMs - Number(fleet.accepting_since_ms);
  return eb.and([eb(eb.lit(isAccepting ? 1 : 0), '=', 1), eb(granted(eb), '<', acceptedMs)]);
}

function granted(eb: Builder) {
  return eb.parens(eb('hosts.every_ms', '*', eb.lit(2)));
}

/**
 * Translates a host filter into an SQL condition on `hosts`. Queries nothing, and throws nothing.
 * @param releases names of the releases with the adoption that the filter names, from standing-query.ts
 * @returns a condition that is true for hosts that match every member of the filter. Without `is`, retired hosts never match,
 *   so that an empty filter matches all other hosts. With `bundle.active`, only reporting hosts without a clone match
 */
export function matching(
  eb: Builder,
  filter: HostFilter,
  asking: At,
  releases?: readonly string[],
): Condition {
  const conditions: Condition[] = [ofState(eb, filter.is, asking)];
  if (filter.host !== undefined) conditions.push(eb.and([eb('hosts.host', '=', filter.host)]));
  if (filter.health !== undefined) conditions.push(eb.and([eb('hosts.health', '=', filter.health)]));
  if (filter.version !== undefined) conditions.push(eb.and([eb('hosts.version', '=', filter.version)]));
  if (filter.root !== undefined) conditions.push(eb.and([eb('hosts.root_version', '=', filter.root)]));
  if (filter.kind !== undefined) conditions.push(eb.and([eb('hosts.kind', '=', filter.kind as 'writ')]));
  for (const [name, value] of Object.entries(filter.labels)) conditions.push(hasLabel(eb, name, value));
  if (Object.keys(filter.bundle).length > 0) {
    conditions.push(hasBundle(eb, filter.bundle, releases));
    // A cloned and silent host counts as cloned for its release.
    if (filter.is === 'silent') conditions.push(eb('hosts.cloned', '=', 0));
  }
  // As in all counts: a silent, stopped or cloned host has its own state, and is not in the state that it reported.
  if (filter.bundle.active !== undefined)
    conditions.push(isReportOfNow(eb, asking), eb('hosts.cloned', '=', 0));
  return eb.and(conditions);
}

function ofState(eb: Builder, is: HostFilter['is'], asking: At): Condition {
  switch (is) {
    case undefined:
      return eb.and([eb('hosts.state', '!=', 'retired')]);
    case 'silent':
      return isSilentRow(eb, asking);
    case 'unjudged':
      return hasUnknownLivenessRow(eb, asking);
    case 'stopped':
      return isStoppedRow(eb);
    case 'blocked':
      return eb.and([eb('hosts.state', '=', 'accepted'), eb('hosts.blocked', '=', 1)]);
    case 'critical':
      return isCriticalRow(eb, asking);
    case 'cloned':
      return eb.and([eb('hosts.state', '!=', 'retired'), eb('hosts.cloned', '=', 1)]);
    default:
      return eb.and([eb('hosts.state', '=', is)]);
  }
}

function hasLabel(eb: Builder, name: string, value: string): Condition {
  return eb.and([
    eb.exists(
      eb
        .selectFrom('host_labels')
        .select('host_labels.name')
        .whereRef('host_labels.key_id', '=', 'hosts.key_id')
        .where('host_labels.name', '=', name)
        .where('host_labels.value', '=', value),
    ),
  ]);
}

/** Requires one row to match all conditions: a host that runs 42 of one bundle and refused another bundle did not refuse 42. */
function hasBundle(eb: Builder, filter: BundleFilter, releases?: readonly string[]): Condition {
  return eb.and([
    eb.exists(matchingBundleRows(eb, filter, releases).whereRef('host_bundles.key_id', '=', 'hosts.key_id')),
  ]);
}

/** @returns rows of bundles that match the filter, of all hosts */
export function matchingBundleRows(eb: Builder, filter: BundleFilter, releases?: readonly string[]) {
  let rows = eb.selectFrom('host_bundles').select('host_bundles.key_id');
  const { bundle, channel, serial, active, offered, code } = filter;
  // With a condition on an offer, the bundle, channel and serial are those of the offered release.
  const isOffer = offered !== undefined || code !== undefined;
  if (bundle !== undefined) rows = rows.where((row) => named(row, 'host_bundles.bundle', bundle, isOffer));
  if (channel !== undefined) rows = rows.where((row) => named(row, 'host_bundles.channel', channel, isOffer));
  if (active !== undefined) rows = rows.where('host_bundles.state', '=', active as 'confirmed');
  if (offered !== undefined) rows = rows.where('host_bundles.offered_state', '=', offered as 'refused');
  if (code !== undefined) rows = rows.where('host_bundles.offered_code', '=', code);
  if (releases !== undefined)
    // An empty list is invalid SQL. The empty name matches no release.
    rows = rows.where((row) => row(releaseName(row), 'in', releases.length === 0 ? [''] : releases));
  if (serial !== undefined)
    rows = rows.where(isOffer ? 'host_bundles.offered_serial' : 'host_bundles.serial', '=', serial);
  // The condition of the partial index of offers.
  return isOffer ? rows.where((row) => row('host_bundles.offered_serial', '>', row.lit(0))) : rows;
}

/** Prevents the index of all hosts of a channel for an offer, so that the database uses the index of offers, which has few rows. */
function named(
  row: ExpressionBuilder<Tables, 'host_bundles'>,
  column: 'host_bundles.bundle' | 'host_bundles.channel',
  value: string,
  isOffer: boolean,
) {
  const of: Expression<string> = row.ref(column);
  return isOffer ? row(row(of, '||', row.val('')), '=', value) : row(column, '=', value);
}

/** Reads when servers of this fleet accepted reports. */
export async function readAccepting(db: Kysely<Tables>): Promise<Asking['fleet']> {
  const columns = ['accepting_since_ms', 'accepting_until_ms'] as const;
  return db.selectFrom('fleet').select(columns).executeTakeFirstOrThrow();
}
