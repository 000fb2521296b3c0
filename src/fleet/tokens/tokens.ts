// Creates, lists, revokes and finds tokens. The store has only digests: a reader of the store gets no token, and the time of a query by
// digest reveals none. Each change adds its audit entry in the same transaction.
import { createHash, randomBytes } from 'node:crypto';
import type { Kysely } from 'kysely';
import { WritError } from '../../core/errors.js';
import type { NewToken } from '../../core/fleet/token-answers.js';
import { addAudit } from '../store/audit.js';
import type { Tables, TokenRow } from '../store/tables.js';
import { transact } from '../store/transact.js';
import { checkNewToken } from './new-token.js';
import { stateOfToken, type TokenKind, tokenPrefixes } from './token-rules.js';

export interface MadeToken {
  readonly id: string;
  /** The only copy of the token. It is not stored. */
  readonly token: string;
}

/** The columns that may be shown. */
export type ListedToken = Omit<TokenRow, 'digest'>;

export interface AuditedChange {
  readonly who: string;
  readonly nowMs: number;
}

/**
 * Stores the digest of a new token, and records the token in the audit.
 * @returns the only copy of the token
 * @throws USAGE for an invalid token, FLEET_STORE_*
 */
export async function createToken(
  db: Kysely<Tables>,
  wanted: NewToken,
  change: AuditedChange,
): Promise<MadeToken> {
  checkNewToken(wanted);
  const { who, nowMs } = change;
  const id = randomBytes(6).toString('hex');
  const token = `${tokenPrefixes[wanted.kind]}${randomBytes(32).toString('base64url')}`;
  const row: TokenRow = {
    id,
    digest: tokenDigest(token),
    kind: wanted.kind,
    role: wanted.kind === 'people' ? (wanted.role ?? 'view') : '',
    note: wanted.note ?? '',
    uses_left: wanted.uses ?? -1,
    expires_at_ms: wanted.lifetimeMs === undefined ? 0 : nowMs + wanted.lifetimeMs,
    hosts: wanted.hosts ?? '',
    labels: JSON.stringify(wanted.labels ?? {}),
    created_at_ms: nowMs,
    revoked_at_ms: 0,
  };
  await transact(db, async (trx) => {
    await trx.insertInto('tokens').values(row).execute();
    const detail = [row.kind, row.role, row.hosts].filter((part) => part !== '').join(' ');
    await addAudit(trx, { atMs: nowMs, who, what: 'token.create', subject: id, detail });
  });
  return { id, token };
}

/** @returns all tokens, the newest first */
export async function listTokens(db: Kysely<Tables>): Promise<ListedToken[]> {
  const rows = await db
    .selectFrom('tokens')
    .selectAll()
    .orderBy('created_at_ms', 'desc')
    .orderBy('id')
    .execute();
  return rows.map(({ digest: _, ...rest }) => rest);
}

/** Revokes a token and ends its sessions. @throws FLEET_TOKEN_UNKNOWN */
export async function revokeToken(
  db: Kysely<Tables>,
  id: string,
  { who, nowMs }: AuditedChange,
): Promise<void> {
  await transact(db, async (trx) => {
    const token = await requireToken(trx, id);
    if (token.revoked_at_ms !== 0) return;
    await trx.updateTable('tokens').set({ revoked_at_ms: nowMs }).where('id', '=', id).execute();
    await trx.deleteFrom('sessions').where('token_id', '=', id).execute();
    await addAudit(trx, { atMs: nowMs, who, what: 'token.revoke', subject: id });
  });
}

/**
 * @returns when the token was revoked, in epoch milliseconds; 0: not yet
 * @throws FLEET_TOKEN_UNKNOWN
 */
export async function requireToken(
  db: Kysely<Tables>,
  id: string,
): Promise<Pick<ListedToken, 'revoked_at_ms'>> {
  const token = await db.selectFrom('tokens').select('revoked_at_ms').where('id', '=', id).executeTakeFirst();
  if (token !== undefined) return token;
  throw new WritError('FLEET_TOKEN_UNKNOWN', `no token has the id ${id.slice(0, 64)}`);
}

/** @returns the token's row. @throws FLEET_TOKEN_REFUSED with the reason in its facts */
export async function checkToken(
  db: Kysely<Tables>,
  text: string,
  kind: TokenKind,
  nowMs: number,
): Promise<ListedToken> {
  const row = await findToken(db, text, kind);
  const state = row === undefined ? 'unknown' : stateOfToken(row, nowMs);
  if (row === undefined || state !== 'good') throw tokenRefused(state, kind);
  return row;
}

/** @returns undefined for an unknown token or one of another kind */
export async function findToken(
  db: Kysely<Tables>,
  text: string,
  kind: TokenKind,
): Promise<ListedToken | undefined> {
  const row = await db
    .selectFrom('tokens')
    .selectAll()
    .where('digest', '=', tokenDigest(text))
    .where('kind', '=', kind)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { digest: _, ...rest } = row;
  return rest;
}

/**
 * Takes one use of a token in one statement, so that of two concurrent requests only one gets the last use.
 * @returns false if no use is left, or the token was revoked meanwhile
 */
export async function takeUse(trx: Kysely<Tables>, id: string): Promise<boolean> {
  const taken = await trx
    .updateTable('tokens')
    .set((eb) => ({
      uses_left: eb
        .case()
        .when('uses_left', '>', 0)
        .then(eb('uses_left', '-', 1))
        .else(eb.ref('uses_left'))
        .end(),
    }))
    .where('id', '=', id)
    .where('uses_left', '<>', 0)
    .where('revoked_at_ms', '=', 0)
    .executeTakeFirst();
  return taken.numUpdatedRows === 1n;
}

/**
 * Creates the error for a request with a token that is not valid. Does not throw it.
 * @param state the rest of the sentence `the token is ...`, as `expired`
 * @param kind of the token that the request needs
 * @returns FLEET_TOKEN_REFUSED with the state in `facts.actual`, the needed kind in `facts.expected`, and the command that
 *   creates such a token as its hint
 */
export function tokenRefused(state: string, kind: TokenKind): WritError {
  return new WritError('FLEET_TOKEN_REFUSED', `the token is ${state}`, {
    facts: { expected: `a token for ${kind}`, actual: state },
    hint: `Create a token on the fleet server, \`writ fleet token create -q --for ${kind}\`, and use it in place of the refused one.`,
  });
}

/** @returns the digest in the store: SHA-256, hex. 32 random bytes need no slower digest. */
export function tokenDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
