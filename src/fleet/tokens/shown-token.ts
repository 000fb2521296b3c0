// Converts the row of a token to an answer, without its digest. Pure.
import type { TokenLine } from '../../core/fleet/token-answers.js';
import { given } from '../../core/given.js';
import { stateOfToken } from './token-rules.js';
import type { ListedToken } from './tokens.js';

/**
 * @returns the token without its secret and digest. A member without a value is left out: no expiry, no bound of uses,
 * no role.
 */
export function shownToken(row: ListedToken, nowMs: number): TokenLine {
  const text = (value: string): string | undefined => (value === '' ? undefined : value);
  return {
    id: row.id,
    kind: row.kind,
    state: stateOfToken(row, nowMs),
    createdAtMs: row.created_at_ms,
    labels: JSON.parse(row.labels) as Record<string, string>,
    ...given({
      role: row.role === '' ? undefined : row.role,
      note: text(row.note),
      hosts: text(row.hosts),
      usesLeft: row.uses_left === -1 ? undefined : row.uses_left,
      expiresAtMs: row.expires_at_ms === 0 ? undefined : row.expires_at_ms,
    }),
  };
}
