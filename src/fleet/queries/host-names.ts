// Reads names of hosts for findings of the summary that concern few hosts. Owns the bound: a finding with more hosts contains only
// their number.
import type { Kysely } from 'kysely';
import { maxNamedHosts } from '../../core/fleet/fleet-summary.js';
import { parseHostFilter } from '../../core/fleet/host-filter.js';
import type { Tables } from '../store/tables.js';
import type { Asking } from './host-lines.js';
import { isReportOfNow, matching, matchingBundleRows } from './host-where.js';

const maxFilters = 8;

/** @returns names by filter, of the first 8 filters; without filters that match no host, or more than maxNamedHosts */
export async function readHostNames(
  db: Kysely<Tables>,
  filters: readonly string[],
  at: Pick<Asking, 'nowMs' | 'fleet'>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const names = new Map<string, readonly string[]>();
  for (const where of filters.slice(0, maxFilters)) {
    const found = await namesOf(db, where, at);
    if (found.length > 0 && found.length <= maxNamedHosts) names.set(where, found);
  }
  return names;
}

/** Queries the rows of bundles first, because they have an index for each of these filters. */
async function namesOf(
  db: Kysely<Tables>,
  where: string,
  at: Pick<Asking, 'nowMs' | 'fleet'>,
): Promise<string[]> {
  const filter = parseHostFilter(where);
  const { bundle } = filter;
  let query = db
    .selectFrom('hosts')
    .select('host')
    .where((eb) => matching(eb, { ...filter, bundle: {} }, at));
  if (Object.keys(bundle).length > 0)
    query = query.where((eb) => eb('hosts.key_id', 'in', matchingBundleRows(eb, bundle)));
  if (bundle.active !== undefined) query = query.where((eb) => isReportOfNow(eb, at));
  const rows = await query
    .orderBy('host')
    .limit(maxNamedHosts + 1)
    .execute();
  return rows.map(({ host }) => host);
}
