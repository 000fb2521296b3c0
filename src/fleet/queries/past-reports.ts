// Counts hosts with an outdated last report, because they are silent, stopped or cloned, by the release of that report. Reads a row
// for each such host, so that the caller bounds how often it calls.
import type { Kysely } from 'kysely';
import type { ReportedHosts } from '../../core/fleet/delivery-state.js';
import type { Tables } from '../store/tables.js';
import { type Builder, isSilentRow, isStoppedRow } from './host-where.js';

export interface ReleaseFilter {
  readonly bundle?: string;
  readonly channel?: string;
  readonly serial?: number;
}

export interface PastReports extends Pick<ReportedHosts, 'bake' | 'hosts'> {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly manifest: string;
  readonly state: ReportedHosts['state'] | 'none';
  readonly presence: 'silent' | 'stopped' | 'cloned';
}

/**
 * @returns one count for each release, state and liveness of these hosts; empty when the report of each host is
 * current
 * @param at the time and the fleet by which silence is judged
 * @throws WritError FLEET_STORE_*
 */
export async function readPastReports(
  db: Kysely<Tables>,
  at: Parameters<typeof isSilentRow>[1],
  { bundle, channel, serial }: ReleaseFilter = {},
): Promise<PastReports[]> {
  let query = db
    .selectFrom('hosts')
    .innerJoin('host_bundles', 'host_bundles.key_id', 'hosts.key_id')
    .select(['bundle', 'channel', 'serial', 'manifest', 'host_bundles.state', 'bake'])
    .select((of) => of.fn.countAll<number>().as('counted'))
    .where('hosts.kind', '=', 'writ')
    .groupBy(['bundle', 'channel', 'serial', 'manifest', 'host_bundles.state', 'bake']);
  if (bundle !== undefined) query = query.where('bundle', '=', bundle);
  if (channel !== undefined) query = query.where('channel', '=', channel);
  if (serial !== undefined) query = query.where('serial', '=', serial);
  const read = async (
    presence: PastReports['presence'],
    isIncluded: (eb: Builder) => ReturnType<Builder['and']>,
  ): Promise<PastReports[]> => {
    const rows = await query.where(isIncluded).execute();
    return rows.map(({ counted, serial: of, ...row }) => {
      return { ...row, serial: Number(of), presence, hosts: Number(counted) };
    });
  };
  // Each host is counted once, by the first condition in the order of deliveryState.
  return [
    ...(await read('silent', (eb) => eb.and([isSilentRow(eb, at), eb('hosts.cloned', '=', 0)]))),
    ...(await read('stopped', isStoppedRow)),
    ...((await hasClones(db)) ? await read('cloned', isClonedRow) : []),
  ];
}

/** @returns whether there are clones, from the counters. No index finds clones, so that the query would read all hosts. */
async function hasClones(db: Kysely<Tables>): Promise<boolean> {
  const found = await db
    .selectFrom('host_counters')
    .select('count')
    .where('cloned', '=', 1)
    .where('count', '>', 0)
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

function isClonedRow(eb: Builder) {
  const isAccepted = eb('hosts.state', '=', 'accepted');
  return eb.and([isAccepted, eb('hosts.agent', '!=', 'stop'), eb('hosts.cloned', '=', 1)]);
}
