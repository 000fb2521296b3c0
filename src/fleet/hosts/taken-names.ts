// Whether a name that a report comes under for the first time is somebody else's: the rule of an enrolment, at any later time. Looks
// and locks inside the transaction that writes the report; what becomes of the host is report-plan's.
import type { Kysely } from 'kysely';
import { lockUntilCommit } from '../store/leases.js';
import type { Tables } from '../store/tables.js';

export interface NewName {
  readonly keyId: string;
  readonly host: string;
}

/** @returns the keys whose new name an accepted host has, or another one of these asked for before */
export async function takenNames(
  trx: Kysely<Tables>,
  asked: readonly NewName[],
): Promise<ReadonlySet<string>> {
  if (asked.length === 0) return new Set();
  // Two that ask for one name at once would both find it free.
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
