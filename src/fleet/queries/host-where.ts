// A filter of hosts as conditions of a query: every value is bound, none is part of the text. Retired hosts are found only by
// who asks for them. Owns the meaning of each word of a filter in rows.
import type { Expression, ExpressionBuilder, Kysely } from 'kysely';
import type { BundleFilter, HostFilter } from '../../core/fleet/host-filter.js';
import { acceptingGapMs, lastSeenLagMs } from '../hosts/silence-rules.js';
import type { Tables } from '../store/tables.js';
import type { Asking } from './host-lines.js';
import { releaseName } from './standing-query.js';

export type Builder = ExpressionBuilder<Tables, 'hosts'>;
type Condition = ReturnType<Builder['and']>;

type At = Omit<Asking, 'role' | 'views'>;

/** As silence-rules judges one host: the same bounds, in the words of a query. */
export function isSilentRow(eb: Builder, at: At): Condition {
  return eb.and([isOverdueRow(eb, at), wasHeardRow(eb, at)]);
}

/** Each by its own interval: one that asked for a day keeps nobody else from being judged. */
export function isUnjudgedRow(eb: Builder, at: At): Condition {
  return eb.and([isOverdueRow(eb, at), eb.not(wasHeardRow(eb, at))]);
}

/** Reports that it is critical. A blocked host has a finding of its own, and a report of the past says nothing about now. */
export function isCriticalRow(eb: Builder, at: At): Condition {
  return eb.and([
    eb('hosts.state', '=', 'accepted'),
    eb('hosts.health', '=', 'critical'),
    eb('hosts.kind', '=', 'writ'),
    eb('hosts.blocked', '=', 0),
    isReportOfNow(eb, at),
  ]);
}

/** Its agent ended in order. */
export function isStoppedRow(eb: Builder): Condition {
  return eb.and([eb('hosts.state', '=', 'accepted'), eb('hosts.agent', '=', 'stop')]);
}

export function isReportOfNow(eb: Builder, at: At): Condition {
  return eb.and([eb('hosts.agent', '!=', 'stop'), eb.not(isSilentRow(eb, at))]);
}

function isOverdueRow(eb: Builder, { nowMs }: At): Condition {
  return eb.and([
    eb('hosts.state', '=', 'accepted'),
    eb('hosts.agent', '=', 'run'),
    // In the words of the index by this time: those that are overdue are looked at, and nobody else.
    eb(eb.parens(eb('hosts.last_seen_ms', '+', granted(eb))), '<', nowMs - lastSeenLagMs),
  ]);
}

/** The fleet accepts, and has for as long as this host may be quiet. */
function wasHeardRow(eb: Builder, { nowMs, fleet }: At): Condition {
  const isAccepting = nowMs - Number(fleet.accepting_until_ms) <= acceptingGapMs;
  const acceptedMs = nowMs - lastSeenLagMs - Number(fleet.accepting_since_ms);
  return eb.and([eb(eb.lit(isAccepting ? 1 : 0), '=', 1), eb(granted(eb), '<', acceptedMs)]);
}

function granted(eb: Builder) {
  return eb.parens(eb('hosts.every_ms', '*', eb.lit(2)));
}

/** @param releases names of those that the filter's standing is of, as standing-query has them */
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
    // A clone that is silent too counts as cloned for its release.
    if (filter.is === 'silent') conditions.push(eb('hosts.cloned', '=', 0));
  }
  // As every count has it: a host that is silent, stopped or cloned is in a state of its own.
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
      return isUnjudgedRow(eb, asking);
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

/** All of it of one row: a host that runs 42 of one bundle and refused another is not one that refused 42. */
function hasBundle(eb: Builder, filter: BundleFilter, releases?: readonly string[]): Condition {
  return eb.and([
    eb.exists(bundleRows(eb, filter, releases).whereRef('host_bundles.key_id', '=', 'hosts.key_id')),
  ]);
}

/** @returns rows of bundles that fit, of any host */
export function bundleRows(eb: Builder, filter: BundleFilter, releases?: readonly string[]) {
  let rows = eb.selectFrom('host_bundles').select('host_bundles.key_id');
  const { bundle, channel, serial, active, offered, code } = filter;
  // Of what is offered where an offer is asked for.
  const isOffer = offered !== undefined || code !== undefined;
  if (bundle !== undefined) rows = rows.where((row) => named(row, 'host_bundles.bundle', bundle, isOffer));
  if (channel !== undefined) rows = rows.where((row) => named(row, 'host_bundles.channel', channel, isOffer));
  if (active !== undefined) rows = rows.where('host_bundles.state', '=', active as 'confirmed');
  if (offered !== undefined) rows = rows.where('host_bundles.offered_state', '=', offered as 'refused');
  if (code !== undefined) rows = rows.where('host_bundles.offered_code', '=', code);
  if (releases !== undefined)
    // An empty list is no SQL: a name that no release has finds nobody.
    rows = rows.where((row) => row(releaseName(row), 'in', releases.length === 0 ? [''] : releases));
  if (serial !== undefined)
    rows = rows.where(isOffer ? 'host_bundles.offered_serial' : 'host_bundles.serial', '=', serial);
  // The condition of the index of offers.
  return isOffer ? rows.where((row) => row('host_bundles.offered_serial', '>', row.lit(0))) : rows;
}

/** An offer is found by the index of offers, which has few rows, and not by that of all hosts of the channel. */
function named(
  row: ExpressionBuilder<Tables, 'host_bundles'>,
  column: 'host_bundles.bundle' | 'host_bundles.channel',
  value: string,
  isOffer: boolean,
) {
  const of: Expression<string> = row.ref(column);
  return isOffer ? row(row(of, '||', row.val('')), '=', value) : row(column, '=', value);
}

/** When servers of this fleet took reports. */
export async function readAccepting(db: Kysely<Tables>): Promise<Asking['fleet']> {
  const columns = ['accepting_since_ms', 'accepting_until_ms'] as const;
  return db.selectFrom('fleet').select(columns).executeTakeFirstOrThrow();
}
