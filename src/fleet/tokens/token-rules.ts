// What a token is and what it may: its text, whether it is good now, and whose name it covers. Pure.
import type { TokenRow } from '../store/tables.js';

export type TokenKind = TokenRow['kind'];
export type Role = Exclude<TokenRow['role'], ''>;

/** A scanner for leaked secrets finds them by these. */
export const tokenPrefixes: Readonly<Record<TokenKind, string>> = {
  hosts: 'writ_host_',
  people: 'writ_people_',
  opa: 'writ_opa_',
};

export type TokenState = 'good' | 'revoked' | 'expired' | 'used-up';

/** `expires_at_ms` 0: never; `uses_left` -1: no bound. */
export function stateOfToken(
  token: Pick<TokenRow, 'revoked_at_ms' | 'expires_at_ms' | 'uses_left'>,
  nowMs: number,
): TokenState {
  if (token.revoked_at_ms !== 0) return 'revoked';
  if (token.expires_at_ms !== 0 && token.expires_at_ms <= nowMs) return 'expired';
  return token.uses_left === 0 ? 'used-up' : 'good';
}

const rank: Readonly<Record<Role, number>> = { view: 1, detail: 2, operate: 3 };

/** `operate` sees what `detail` sees, and `detail` what `view` sees. */
export function mayAs(role: TokenRow['role'], needed: Role): boolean {
  return role !== '' && rank[role] >= rank[needed];
}

/**
 * `*` stands for any number of characters, `?` for one; '' covers every host. In time of the product of the lengths,
 * whatever the pattern: a regular expression could be made to run for years.
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
