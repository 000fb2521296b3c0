// What people and programs changed in a fleet, a row each, newest first by its number. Written in the transaction of the
// change itself; never changed afterwards, and forgotten by its age, or where one host says the same without end.
import { randomInt } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { Tables } from './tables.js';

export interface AuditEntry {
  readonly atMs: number;
  /** A token's id, a person by a proxy's word, `store` for who has the store itself, `server`. */
  readonly who: string;
  /** As `token.create`, `host.retire`. */
  readonly what: string;
  /** A host's key or a token's id. */
  readonly subject: string;
  readonly detail?: string;
}

/** Numbers of a moment: with them the number of a row is exact in JavaScript until 2109. */
const perMs = 2048;
const maxDetailLength = 500;

/** Numbers grow with time, and need no counter that two servers would share. */
export async function addAudit(trx: Kysely<Tables>, entry: AuditEntry): Promise<void> {
  const { atMs, who, what, subject, detail = '' } = entry;
  const row = { at_ms: atMs, who, what, subject, detail: detail.slice(0, maxDetailLength) };
  for (;;) {
    const id = atMs * perMs + randomInt(perMs);
    const added = await trx
      .insertInto('audit')
      .values({ id, ...row })
      .onConflict((of) => of.column('id').doNothing())
      .executeTakeFirst();
    if (added.numInsertedOrUpdatedRows !== 0n) return;
  }
}
