// Reads one release of a channel: hosts that run it, hosts that do not and why, and the confirmations over time as a curve of at most
// 100 points. Owns the width of a point.
import type { Kysely } from 'kysely';
import type { ReleaseReport } from '../../core/fleet/answers.js';
import { signedReleases, signedSerial } from '../../core/fleet/signed-releases.js';
import { given } from '../../core/given.js';
import { countPastHosts } from '../intervals/interval-query.js';
import type { Tables } from '../store/tables.js';
import type { Asking } from './host-lines.js';
import { readPastReports } from './past-reports.js';
import { countReleases } from './release-counts.js';

export interface ReleaseQuestion {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  /** Serial of the release to compare the signed entry with. */
  readonly against?: number;
}

const maxPoints = 100;

/**
 * @returns the report of the release. Without a host that runs it, `past` counts the hosts that ran it before.
 * `signed` is left out while the server follows no repository.
 * @throws WritError FLEET_STORE_*
 */
export async function readRelease(
  db: Kysely<Tables>,
  question: ReleaseQuestion,
  { views, ...at }: Pick<Asking, 'views' | 'nowMs' | 'fleet'>,
): Promise<ReleaseReport> {
  const ended = await readPastReports(db, at, question);
  const { releases, offers } = await countReleases(db, views, ended, question);
  const past = releases.length === 0 ? await countPastHosts(db, question) : undefined;
  const signed = views.length === 0 ? {} : { signed: signedReleases(views, question) };
  return {
    schema: 1,
    type: 'fleet.release',
    releases,
    offers,
    ...signed,
    ...given({ past }),
    curve: await curveOf(db, question, signedSerial(views, { ...question, sinceMs: at.nowMs }).manifests),
  };
}

async function curveOf(
  db: Kysely<Tables>,
  { bundle, channel, serial }: ReleaseQuestion,
  signed: readonly string[],
): Promise<ReleaseReport['curve']> {
  const reported = db
    .selectFrom('host_bundles')
    .where('bundle', '=', bundle)
    .where('channel', '=', channel)
    .where('serial', '=', serial)
    .where('state', '=', 'confirmed');
  const rows = signed.length === 0 ? reported : reported.where('manifest', 'in', [...signed]);
  const ends = await rows
    .select((of) => [of.fn.min<number>('since_ms').as('first'), of.fn.max<number>('since_ms').as('last')])
    .executeTakeFirst();
  if (ends === undefined || ends.first === null) return [];
  const [first, last] = [Number(ends.first), Number(ends.last)];
  const width = Math.max(1, Math.ceil((last - first + 1) / maxPoints));
  const points = await rows
    .select((of) => of(of.parens(of('since_ms', '-', first)), '/', width).as('point'))
    .select((of) => of.fn.countAll<number>().as('hosts'))
    .groupBy('point')
    .orderBy('point')
    .execute();
  let confirmed = 0;
  return points.map(({ point, hosts }) => {
    confirmed += Number(hosts);
    return { atMs: Math.min(last, first + (Number(point) + 1) * width - 1), confirmed };
  });
}
