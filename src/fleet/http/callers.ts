// Finds the caller of a request: a bearer token, the session cookie of a page, or the person in the header of a proxy. Checks its role,
// and refuses a change that a page of another site sent. The store has digests of tokens and sessions; a token in a URL is not read.
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { Kysely } from 'kysely';
import { WritError } from '../../core/errors.js';
import type { Role } from '../../core/fleet/answers.js';
import { keepNewest } from '../store/keep-newest.js';
import type { Tables } from '../store/tables.js';
import { transact } from '../store/transact.js';
import { hasRole, stateOfToken } from '../tokens/token-rules.js';
import { checkToken, tokenDigest, tokenRefused } from '../tokens/tokens.js';
import { type IdentityRule, readIdentity } from './identity-rules.js';
import type { RefusalBound } from './refusal-bound.js';

export interface Caller {
  /** Name of the caller in the audit. */
  readonly who: string;
  readonly role: Role;
  /** Left out for the anonymous caller of an open route. */
  readonly by?: 'token' | 'session' | 'proxy';
}

export interface CallerParts {
  readonly db: Kysely<Tables>;
  readonly bound: RefusalBound;
  readonly nowMs: number;
  /** Left out: no proxy names persons. */
  readonly identity?: IdentityRule;
  /** Sessions over TLS alone. */
  readonly secure: boolean;
}

/** The part of a request that contains credentials. */
export type CredentialRequest = Pick<FastifyRequest, 'headers' | 'ip'>;

interface PageAddress {
  readonly hasTls: boolean;
  /** Address on which the server listens. */
  readonly host: string;
  /** Address under which people reach it. */
  readonly publicUrl?: string | undefined;
}

/** @returns whether browsers reach the page over TLS, of this server or of a proxy before it: its cookies are then Secure */
export function hasSecurePage({ hasTls, host, publicUrl }: PageAddress): boolean {
  return hasTls || publicUrl?.startsWith('https:') === true || !/^(?:127\.|::1$|localhost$)/.test(host);
}

/**
 * `__Host-`: a browser takes such a cookie from this host alone, over TLS. A plain name could also be set by a sibling domain, which
 * would then sign its visitor in with a session of another person. Without TLS, on loopback, browsers refuse the prefix.
 */
const cookieName = (secure: boolean): string => (secure ? '__Host-writ_session' : 'writ_session');
const sessionMs = 12 * 3_600_000;
/** The newest sessions stay: a person who signs in again and again does not fill the store. */
const sessionsOfToken = 100;

type IdentifiedCaller = Required<Caller>;

/**
 * @returns the person of the proxy header, else of the bearer token, else of the session cookie
 * @throws FLEET_TOKEN_REFUSED without credentials that are good now; FLEET_IDENTITY_REFUSED; FLEET_REFUSED_OFTEN
 */
export async function findCaller(parts: CallerParts, asking: CredentialRequest): Promise<IdentifiedCaller> {
  const { headers, ip: address } = asking;
  const named = await findProxyCaller(parts, asking, hasCredential(headers));
  if (named !== undefined) return named;
  const bearer = readBearer(headers);
  const session = readSession(headers, parts.secure);
  const credential = bearer ?? session;
  if (credential === undefined) throw tokenRefused('missing', 'people');
  return parts.bound.guard({ address, credential }, () =>
    bearer === undefined ? findSessionCaller(parts, credential) : findTokenCaller(parts, bearer),
  );
}

/** Without a query of the store: refusals of other callers do not delay a person in the header. A refused header counts as a refusal. */
async function findProxyCaller(
  { identity: rule, bound }: CallerParts,
  asking: CredentialRequest,
  isBeside: boolean,
): Promise<IdentifiedCaller | undefined> {
  const found = rule && readIdentity(rule, asking, isBeside);
  if (rule === undefined || found === undefined) return undefined;
  if ('person' in found) return { who: `person ${found.person}`, role: rule.role, by: 'proxy' };
  return bound.guard({ address: asking.ip, credential: `refused ${found.refused}` }, async () => {
    throw new WritError('FLEET_IDENTITY_REFUSED', `the header ${rule.header} came ${found.refused}`, {
      facts: { header: rule.header, actual: found.refused },
    });
  });
}

/** A malformed credential counts too, because its sender meant to be identified by it. */
function hasCredential({ authorization = '', cookie = '' }: IncomingHttpHeaders): boolean {
  return /^\s*bearer\b/i.test(authorization) || /(?:^|;)\s*(?:__Host-)?writ_session=/.test(cookie);
}

async function findTokenCaller({ db, nowMs }: CallerParts, bearer: string): Promise<IdentifiedCaller> {
  const { id, role } = await checkToken(db, bearer, 'people', nowMs);
  return { who: `token ${id}`, role: role || 'view', by: 'token' };
}

async function findSessionCaller({ db, nowMs }: CallerParts, session: string): Promise<IdentifiedCaller> {
  const row = await db
    .selectFrom('sessions')
    .innerJoin('tokens', 'tokens.id', 'sessions.token_id')
    .select(['tokens.id', 'tokens.role', 'tokens.revoked_at_ms', 'tokens.expires_at_ms', 'tokens.uses_left'])
    .where('sessions.digest', '=', tokenDigest(session))
    .where('sessions.expires_at_ms', '>', nowMs)
    .executeTakeFirst();
  const state = row === undefined ? 'unknown' : stateOfToken(row, nowMs);
  if (row === undefined || state !== 'good') throw tokenRefused(state, 'people');
  return { who: `token ${row.id}`, role: row.role || 'view', by: 'session' };
}

/** @throws WritError FLEET_FORBIDDEN when the role of the caller does not include the needed one */
export function requireRole(caller: Caller, needed: Role): void {
  if (hasRole(caller.role, needed)) return;
  throw new WritError('FLEET_FORBIDDEN', `this needs the role ${needed}`, {
    facts: { expected: needed, actual: caller.role },
  });
}

/**
 * A browser sends the origin of a request in this header, and no page can change it: a form of another site is refused.
 * @throws WritError FLEET_FORBIDDEN unless sec-fetch-site is `same-origin`, also without the header
 */
export function requireSameOrigin(headers: IncomingHttpHeaders): void {
  if (headers['sec-fetch-site'] === 'same-origin') return;
  throw new WritError('FLEET_FORBIDDEN', 'a change without a token must come from a page of this server', {
    hint: 'Use a bearer token in a program, and a current browser.',
  });
}

/**
 * @returns the value of the cookie, which the server does not store
 * @throws FLEET_TOKEN_REFUSED, FLEET_REFUSED_OFTEN; FLEET_IDENTITY_REFUSED where a proxy names a person: requests with both would
 *   be refused
 */
export async function beginSession(
  parts: CallerParts,
  token: string,
  asking: CredentialRequest,
): Promise<string> {
  const { db, bound, nowMs } = parts;
  const { ip: address } = asking;
  await findProxyCaller(parts, asking, true);
  const { id } = await bound.guard({ address, credential: token }, () =>
    checkToken(db, token, 'people', nowMs),
  );
  const session = randomBytes(32).toString('base64url');
  const row = { digest: tokenDigest(session), token_id: id, expires_at_ms: nowMs + sessionMs };
  await transact(db, async (trx) => {
    await trx.deleteFrom('sessions').where('expires_at_ms', '<=', nowMs).execute();
    await trx.insertInto('sessions').values(row).execute();
    const kept = { table: 'sessions', by: 'expires_at_ms', keep: sessionsOfToken } as const;
    await keepNewest(trx, { ...kept, of: { token_id: id } });
  });
  return session;
}

/**
 * Deletes the session of the cookie from the store. A request without a session cookie changes nothing.
 * @throws WritError FLEET_STORE_*
 */
export async function endSession(
  { db, secure }: Pick<CallerParts, 'db' | 'secure'>,
  headers: IncomingHttpHeaders,
): Promise<void> {
  const session = readSession(headers, secure);
  if (session === undefined) return;
  const ended = tokenDigest(session);
  await transact(db, (trx) => trx.deleteFrom('sessions').where('digest', '=', ended).execute());
}

/**
 * @param session '' for a cookie that ends the session in the browser
 * @param secure from hasSecurePage; a browser does not return a Secure cookie without TLS
 * @returns the value of the Set-Cookie header
 */
export function cookieText(session: string, secure: boolean): string {
  const maxAgeSeconds = session === '' ? 0 : sessionMs / 1000;
  const parts = [
    `${cookieName(secure)}=${session}`,
    'Path=/',
    'HttpOnly',
    'SameSite=Strict',
    `Max-Age=${maxAgeSeconds}`,
  ];
  return [...parts, ...(secure ? ['Secure'] : [])].join('; ');
}

/** @returns the bearer token; undefined unless there is exactly one, of 1 to 200 printable ASCII characters */
export function readBearer({ authorization = '' }: IncomingHttpHeaders): string | undefined {
  return /^Bearer ([\x21-\x7e]{1,200})$/i.exec(authorization)?.[1];
}

function readSession({ cookie = '' }: IncomingHttpHeaders, secure: boolean): string | undefined {
  const begin = `${cookieName(secure)}=`;
  const found = cookie.split(/; */).find((part) => part.startsWith(begin));
  const text = found?.slice(begin.length) ?? '';
  return /^[\w-]{43}$/.test(text) ? text : undefined;
}
