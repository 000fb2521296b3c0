// Whether a key that asks to be a host becomes one: decided from its token, its own row, the rows of its name, and the
// request. Pure. That it holds its key was proven before.
import type { FleetRow, HostRow, TokenRow } from '../store/tables.js';
import { coversHost, stateOfToken } from '../tokens/token-rules.js';
import { silentMs } from './silence-rules.js';

export type KnownHost = Pick<HostRow, 'key_id' | 'state' | 'last_seen_ms' | 'every_ms'>;

export interface EnrolFacts {
  /** Undefined: no token of this kind has these digits. */
  readonly token: Pick<TokenRow, 'revoked_at_ms' | 'expires_at_ms' | 'uses_left' | 'hosts'> | undefined;
  /** The row of this very key. */
  readonly own: Pick<HostRow, 'state'> | undefined;
  /** Others that have its name, in any state. */
  readonly sameName: readonly KnownHost[];
  /** Of this token. */
  readonly waiting: number;
  readonly host: string;
  readonly replaces: boolean;
  readonly fleet: FleetRow;
  readonly nowMs: number;
}

export type EnrolVerdict =
  /** The keys that it replaces are retired with it. */
  | { readonly kind: 'accepted'; readonly retires: readonly string[] }
  | { readonly kind: 'waiting' }
  /** It asked before, and lost the answer. */
  | { readonly kind: 'known'; readonly state: 'accepted' | 'waiting' }
  | {
      readonly kind: 'refused';
      readonly code:
        | 'FLEET_TOKEN_REFUSED'
        | 'FLEET_HOST_NOT_COVERED'
        | 'FLEET_KEY_RETIRED'
        | 'FLEET_ENROL_FULL'
        | 'FLEET_REPORT_INVALID';
      readonly reason: string;
    };

/** A stolen token fills no page with names that wait. */
export const maxWaitingOfToken = 20;

export function judgeEnrolment(facts: EnrolFacts): EnrolVerdict {
  const { token, own, host, nowMs } = facts;
  if (own?.state === 'retired') return refused('FLEET_KEY_RETIRED', 'this key was retired');
  if (own !== undefined) return { kind: 'known', state: own.state };
  const state = token === undefined ? 'unknown' : stateOfToken(token, nowMs);
  if (token === undefined || state !== 'good') return refused('FLEET_TOKEN_REFUSED', `the token is ${state}`);
  if (!coversHost(token.hosts, host)) return refused('FLEET_HOST_NOT_COVERED', `it is for ${token.hosts}`);
  if (!isShownExactly(host)) return refused('FLEET_REPORT_INVALID', lookalikeName);
  return judgeName(facts);
}

/** In a table such a name is equal to another one, so a stranger could enrol with the name of a known host. */
const lookalikeName = 'the host name begins or ends with a space, or is not in Unicode normal form C';

/** @returns false for a name that is shown as another name is */
function isShownExactly(host: string): boolean {
  return host === host.trim().normalize('NFC');
}

/** A name is known by who was accepted under it: who waits for it has no claim. */
function judgeName({ sameName, replaces, waiting, fleet, nowMs }: EnrolFacts): EnrolVerdict {
  const holders = sameName.filter(({ state }) => state === 'accepted');
  if (holders.length === 0) return { kind: 'accepted', retires: [] };
  if (replaces && holders.every((holder) => silentMs(holder, fleet, nowMs) > 0))
    return { kind: 'accepted', retires: holders.map(({ key_id }) => key_id) };
  if (waiting < maxWaitingOfToken) return { kind: 'waiting' };
  return refused('FLEET_ENROL_FULL', `${waiting} hosts of this token wait`);
}

function refused(code: Extract<EnrolVerdict, { kind: 'refused' }>['code'], reason: string): EnrolVerdict {
  return { kind: 'refused', code, reason };
}
