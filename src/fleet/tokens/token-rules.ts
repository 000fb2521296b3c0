// Rules of tokens: their text, their validity, their role, and the host names that they cover. Pure.
import type { TokenRow } from '../store/tables.js';

export type TokenKind = TokenRow['kind'];
export type TokenRole = Exclude<TokenRow['role'], ''>;

/** Prefixes by which a scanner for leaked secrets recognizes tokens. */
export const tokenPrefixes: Readonly<Record<TokenKind, string>> = {
  hosts: 'writ_host_',
  people: 'writ_people_',
  opa: 'writ_opa_',
};

export type TokenState = 'good' | 'revoked' | 'expired' | 'used-up';

/**
 * Decides whether a token is valid. Changes nothing, and throws nothing.
 * @param token `revoked_at_ms` 0: not revoked; `expires_at_ms` 0: never expires; `uses_left` -1: no bound
 * @returns `good` for a valid token; else the first that applies of `revoked`, `expired` (from `expires_at_ms` on) and
 *   `used-up` (no use is left)
 */
export function stateOfToken(
  token: Pick<TokenRow, 'revoked_at_ms' | 'expires_at_ms' | 'uses_left'>,
  nowMs: number,
): TokenState {
  if (token.revoked_at_ms !== 0) return 'revoked';
  if (token.expires_at_ms !== 0 && token.expires_at_ms <= nowMs) return 'expired';
  return token.uses_left === 0 ? 'used-up' : 'good';
}

const rank: Readonly<Record<TokenRole, number>> = { view: 1, detail: 2, operate: 3 };

/** @returns whether the role includes the needed one: `operate` includes `detail`, and `detail` includes `view` */
export function hasRole(role: TokenRow['role'], needed: TokenRole): boolean {
  return role !== '' && rank[role] >= rank[needed];
}

/**
 * Matches a host name: `*` stands for any number of characters, `?` for one; '' covers every host. Takes time of the product of the
 * lengths for any pattern, because a pattern of an attacker could make a regular expression run without end.
 */
export function coversHost(pattern: string, host: string): boolean {
  if (pattern === '') return true;
  let [at, from, star, tried] = [0, 0, -1, 0];
  while (from < host.length) {
    if (pattern[at] === '?' || (pattern[at] === host[from] && pattern[at] !== '*')) {
      at++;
      from++;
    } else if (pattern[at] === '*') {
      star = at++;
      tried = from;
    } else if (star >= 0) {
      at = star + 1;
      from = ++tried;
    } else return false;
  }
  return /^\**$/.test(pattern.slice(at));
}
