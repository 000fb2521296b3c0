// Converts a store to the schema of an earlier version, so that a test can migrate it again.
import { sql } from 'kysely';
import type { FleetStore } from '../../../src/fleet/store/open-store.js';

const indexes = {
  hosts_by_look: 'hosts (state, kind, agent, cloned, version, root_version, root_digest)',
  hosts_by_silence: 'hosts (state, agent, last_seen_ms, every_ms, kind)',
  host_bundles_by_offered_state_offered_code: 'host_bundles (offered_state, offered_code)',
};

/** Converts the store to version 4, the schema of 0.1.0. */
export async function takeBack({ db }: FleetStore): Promise<void> {
  const drop = [
    'hosts_by_due',
    'hosts_by_seen',
    'hosts_ephemeral',
    'host_bundles_by_offer',
    'audit_by_subject',
  ];
  for (const text of [
    'drop table host_counters',
    'drop table intervals',
    ...drop.map((name) => `drop index ${name}`),
    'alter table hosts drop column blocked',
    'alter table hosts drop column answers',
    'alter table host_bundles drop column bake',
    ...Object.entries(indexes).map(([name, on]) => `create index ${name} on ${on}`),
    'delete from schema_versions where version > 4',
  ])
    await sql.raw(text).execute(db);
}
