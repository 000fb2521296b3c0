// Finds the releases in use that have a given adoption of the signed release. Reads counters, so that the cost does not depend on the
// number of hosts. Owns the name of a release in a condition; core decides the adoption.
import type { Expression, ExpressionBuilder, Kysely } from 'kysely';
import { WritError } from '../../core/errors.js';
import type { BundleFilter } from '../../core/fleet/host-filter.js';
import { type RepositoryView, standingOf } from '../../core/fleet/signed-releases.js';
import type { Tables } from '../store/tables.js';

/** Releases of one statement. */
const maxReleases = 5000;

/** SQL name of the release in a row of a bundle. Unambiguous, because names, digests and serials have no slash. */
export function releaseName(eb: ExpressionBuilder<Tables, 'host_bundles'>): Expression<string> {
  const parts: readonly Expression<string>[] = [
    eb.ref('host_bundles.channel'),
    eb.cast<string>('host_bundles.serial', 'text'),
    eb.ref('host_bundles.manifest'),
    eb.ref('host_bundles.repository'),
  ];
  return parts.reduce<Expression<string>>(
    (name, part) => eb(eb(name, '||', eb.val('/')), '||', part),
    eb.ref('host_bundles.bundle'),
  );
}

/**
 * @returns names of the releases with the adoption that the filter names; undefined if it names none
 * @throws WritError USAGE if the server follows no repository, or more than 5000 releases match
 */
export async function releasesWithStanding(
  db: Kysely<Tables>,
  views: readonly RepositoryView[],
  { standing, bundle, channel, serial }: BundleFilter,
): Promise<readonly string[] | undefined> {
  if (standing === undefined) return undefined;
  if (views.length === 0)
    throw new WritError('USAGE', 'no repository is read, so that no release has a standing', {
      hint: 'Start the fleet server with --repository and --root.',
    });
  let query = db
    .selectFrom('counters')
    .select(['bundle', 'channel', 'serial', 'manifest', 'repository'])
    .where('serial', '>', 0)
    .where('manifest', '!=', '')
    .where('count', '>', 0);
  if (bundle !== undefined) query = query.where('bundle', '=', bundle);
  if (channel !== undefined) query = query.where('channel', '=', channel);
  if (serial !== undefined) query = query.where('serial', '=', serial);
  const rows = await query
    .distinct()
    .limit(maxReleases + 1)
    .execute();
  if (rows.length > maxReleases)
    throw new WritError('USAGE', `hosts run more than ${maxReleases} releases`, {
      hint: 'Name a bundle beside the standing.',
    });
  return rows
    .map((row) => ({ ...row, serial: Number(row.serial) }))
    .filter((row) => standingOf(views, { ...row, roots: [row.repository] }).standing === standing)
    .map((row) => [row.bundle, row.channel, row.serial, row.manifest, row.repository].join('/'));
}
