// Finds new names of hosts that another host has already: the rule of an enrolment, applied to later reports. Reads and locks in the
// transaction that writes the reports. report-plan.ts decides what happens to the host.
import type { Kysely } from 'kysely';
import { lockUntilCommit } from '../store/leases.js';
import type { Tables } from '../store/tables.js';

export interface NewName {
  readonly keyId: string;
  readonly host: string;
}

/** @returns the keys of hosts that requested a name of an accepted host, or of an earlier entry of `asked` */
export async function takenNames(
  trx: Kysely<Tables>,
  asked: readonly NewName[],
): Promise<ReadonlySet<string>> {
  if (asked.length === 0) return new Set();
  // Serialize with enrolments, because two concurrent requests for one name would both find it free.
  await lockUntilCommit(trx, 'enrol');
  const rows = await trx
    .selectFrom('hosts')
    .select('host')
    .distinct()
    .where('host', 'in', [...new Set(asked.map(({ host }) => host))])
    .where('kind', '=', 'writ')
    .where('state', '=', 'accepted')
    .execute();
  const names = new Set(rows.map(({ host }) => host));
  const taken = new Set<string>();
  for (const { keyId, host } of asked) {
    if (names.has(host)) taken.add(keyId);
    names.add(host);
  }
  return taken;
}
