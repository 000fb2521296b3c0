// Hosts whose last report says nothing about now, because they are silent or stopped, by the release of that report. It costs a row
// of each such host, so its caller bounds how often it asks.
import type { Kysely } from 'kysely';
import type { ReportedHosts } from '../../core/fleet/delivery-state.js';
import type { Tables } from '../store/tables.js';
import { isSilentRow, isStoppedRow } from './host-where.js';

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
  readonly presence: 'silent' | 'stopped';
}

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
  const of = async (presence: PastReports['presence']): Promise<PastReports[]> => {
    const rows = await query
      .where((eb) => (presence === 'silent' ? isSilentRow(eb, at) : isStoppedRow(eb)))
      .execute();
    return rows.map(({ counted, serial: of, ...row }) => {
      return { ...row, serial: Number(of), presence, hosts: Number(counted) };
    });
  };
  return [...(await of('silent')), ...(await of('stopped'))];
}
