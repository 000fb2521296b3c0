// The audit log of a fleet: one row for each change by a person or a program. A row is written in the transaction of its
// change and is never altered. Rows are deleted by age, and by count where one host adds rows without end.
import { randomInt } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { Tables } from './tables.js';

export interface AuditEntry {
  readonly atMs: number;
  /**
   * The author: the id of a token; the name of a person that a trusted proxy sends; `store` for a command that opens the store itself;
   * `server` for the fleet server.
   */
  readonly who: string;
  /** As `token.create`, `host.retire`. */
  readonly what: string;
  /** A host's key or a token's id. */
  readonly subject: string;
  readonly detail?: string;
}

/** Row numbers available for each millisecond. With 2048 the largest number stays a safe integer until the year 2109. */
const perMs = 2048;
const maxDetailLength = 500;

/**
 * Adds one row. Its number is the time and a random part: numbers grow with time, and two servers need no common counter.
 * `detail` is cut after 500 characters; undefined is stored as ''.
 */
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
