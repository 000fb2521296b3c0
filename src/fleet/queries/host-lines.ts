// Converts rows of hosts to answers, with their bundles and labels. Omits for other roles what only `detail` may see. The caller
// chooses the rows.
import type { Kysely } from 'kysely';
import type { HostBundle, HostLine, Role } from '../../core/fleet/answers.js';
import { type ActiveState, isOfferedState } from '../../core/fleet/report.js';
import { type RepositoryView, standingOf } from '../../core/fleet/signed-releases.js';
import { given } from '../../core/given.js';
import { isHostSilent } from '../hosts/silence-rules.js';
import type { FleetRow, HostBundleRow, HostRow, Tables } from '../store/tables.js';

export interface Asking {
  readonly role: Role;
  readonly nowMs: number;
  /** When servers of this fleet accepted reports. */
  readonly fleet: Pick<FleetRow, 'accepting_since_ms' | 'accepting_until_ms'>;
  /** Views of the repositories that the server follows. */
  readonly views: readonly RepositoryView[];
}

export const lineColumns = [
  ...(['key_id', 'host', 'kind', 'state', 'agent', 'health', 'version', 'root_version'] as const),
  ...(['last_seen_ms', 'every_ms', 'skew_ms', 'cloned', 'ephemeral'] as const),
] as const;

export type LineRow = Pick<HostRow, (typeof lineColumns)[number]>;

/** @returns the hosts with labels and bundles, in the given order; runs two queries for any number of hosts, none for no host */
export async function readLines(
  db: Kysely<Tables>,
  rows: readonly LineRow[],
  asking: Asking,
): Promise<HostLine[]> {
  if (rows.length === 0) return [];
  const keys = rows.map(({ key_id }) => key_id);
  const bundles = await db
    .selectFrom('host_bundles')
    .selectAll()
    .where('key_id', 'in', keys)
    .orderBy('bundle')
    .orderBy('channel')
    .execute();
  const labels = await db
    .selectFrom('host_labels')
    .selectAll()
    .where('key_id', 'in', keys)
    .orderBy('name')
    .execute();
  return rows.map((row) => ({
    ...lineOf(row, asking),
    // Hosts choose the names of labels, for example __proto__, which fromEntries stores as a plain member.
    labels: Object.fromEntries(
      labels.filter((one) => one.key_id === row.key_id).map(({ name, value }) => [name, value]),
    ),
    bundles: bundles.filter((one) => one.key_id === row.key_id).map((one) => bundleOf(one, asking)),
  }));
}

function lineOf(row: LineRow, { nowMs, fleet }: Asking): Omit<HostLine, 'labels' | 'bundles'> {
  return {
    key: row.key_id,
    host: row.host,
    kind: row.kind,
    state: row.state,
    presence: presenceOf(row, fleet, nowMs),
    health: row.health,
    version: row.version,
    root: Number(row.root_version),
    lastSeenMs: Number(row.last_seen_ms),
    skewMs: Number(row.skew_ms),
    cloned: Number(row.cloned) === 1,
  };
}

function presenceOf(row: LineRow, fleet: Asking['fleet'], nowMs: number): HostLine['presence'] {
  // The host has enrolled and not reported yet.
  if (row.agent === '') return 'never';
  if (row.agent === 'stop') return 'stopped';
  return isHostSilent(row, fleet, nowMs) ? 'silent' : 'heard';
}

function bundleOf(row: HostBundleRow, { role, views }: Asking): HostBundle {
  const { bundle, channel, serial, manifest, repository, state, since_ms, offered_state, offered_line } = row;
  const active =
    state === 'none'
      ? undefined
      : {
          serial: Number(serial),
          state: state as ActiveState,
          sinceMs: Number(since_ms),
          ...(row.bake === '' ? {} : { bake: row.bake }),
        };
  const line = role === 'view' || offered_line === '' ? undefined : offered_line;
  const offered = isOfferedState(offered_state)
    ? {
        serial: Number(row.offered_serial),
        state: offered_state,
        code: row.offered_code,
        atMs: Number(row.offered_at_ms),
        ...given({ line }),
      }
    : undefined;
  const running = { bundle, channel, serial: Number(serial), manifest, roots: [repository] };
  const signed = active === undefined || views.length === 0 ? undefined : standingOf(views, running);
  return { bundle, channel, ...given({ active, offered, signed }) };
}
