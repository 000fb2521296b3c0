// Decides whether a key that requests enrolment becomes a host, from its token, its row, the rows with its name, and the request.
// Pure. The caller has verified that the requester holds the key.
import type { FleetRow, HostRow, TokenRow } from '../store/tables.js';
import { coversHost, stateOfToken } from '../tokens/token-rules.js';
import { silentMs } from './silence-rules.js';

export type KnownHost = Pick<HostRow, 'key_id' | 'state' | 'last_seen_ms' | 'every_ms'>;

export interface EnrolFacts {
  /** Undefined if no token of this kind matches. */
  readonly token: Pick<TokenRow, 'revoked_at_ms' | 'expires_at_ms' | 'uses_left' | 'hosts'> | undefined;
  /** The row of the requesting key, if there is one. */
  readonly own: Pick<HostRow, 'state'> | undefined;
  /** Hosts of the same name, in any state. */
  readonly sameName: readonly KnownHost[];
  /** How many hosts of this token wait for approval. */
  readonly waiting: number;
  readonly host: string;
  readonly replaces: boolean;
  readonly fleet: FleetRow;
  readonly nowMs: number;
}

export type EnrolVerdict =
  /** `retires`: keys that the new one replaces. */
  | { readonly kind: 'accepted'; readonly retires: readonly string[] }
  | { readonly kind: 'waiting' }
  /** The key is enrolled already: the response to an earlier request was lost. */
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

/** Bounds how many waiting hosts a stolen token can add. */
export const maxWaitingOfToken = 20;

/**
 * Decides an enrolment: a new key is accepted, waits for approval or is refused; an enrolled key is `known`, also
 * without a valid token.
 * A retired key is refused. Throws nothing: a refusal has its code and its reason.
 */
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

/** In a table such a name is displayed like another one, so that a stranger could enrol with the name of a known host. */
const lookalikeName = 'the host name begins or ends with a space, or is not in Unicode normal form C';

/** @returns false for a name that a page displays like a different name */
function isShownExactly(host: string): boolean {
  return host === host.trim().normalize('NFC');
}

/** Decides by the accepted hosts of the same name. A waiting host has no claim to a name. */
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
