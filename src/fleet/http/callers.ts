// Who asks: a person or a program with a bearer token, a person with the cookie of a session, or one whom a proxy names. Says what
// they may, and that a page of somebody else's asked in their name. The store holds digests of both; a token is never looked for in a URL.
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { Kysely } from 'kysely';
import { WritError } from '../../core/errors.js';
import type { Role } from '../../core/fleet/answers.js';
import { keepNewest } from '../store/keep-newest.js';
import type { Tables } from '../store/tables.js';
import { transact } from '../store/transact.js';
import { mayAs, stateOfToken } from '../tokens/token-rules.js';
import { checkToken, tokenDigest, tokenRefused } from '../tokens/tokens.js';
import { type IdentityRule, identityOf } from './identity-rules.js';
import type { RefusalBound } from './refusal-bound.js';

export interface Caller {
  /** As the audit has it. */
  readonly who: string;
  readonly role: Role;
  /** Left out where nobody asks. */
  readonly by?: 'token' | 'session' | 'proxy';
}

export interface CallerParts {
  readonly db: Kysely<Tables>;
  readonly bound: RefusalBound;
  readonly nowMs: number;
  /** Left out: no proxy is believed. */
  readonly identity?: IdentityRule;
  /** Sessions over TLS alone. */
  readonly secure: boolean;
}

/** What of a request says who asks. */
export type Asking = Pick<FastifyRequest, 'headers' | 'ip'>;

interface PagePlace {
  readonly hasTls: boolean;
  /** Where the server listens. */
  readonly host: string;
  /** Where people reach it. */
  readonly publicUrl?: string | undefined;
}

/** @returns whether browsers reach the page over TLS, of this server or of a proxy before it: its cookies are then Secure */
export function hasSecurePage({ hasTls, host, publicUrl }: PagePlace): boolean {
  return hasTls || publicUrl?.startsWith('https:') === true || !/^(?:127\.|::1$|localhost$)/.test(host);
}

/**
 * `__Host-`: a browser takes such a cookie from this host alone, over TLS. A plain name could also be set by a sibling domain, which
 * would then sign its visitor in with a session of another person. Without TLS, on loopback, browsers refuse the prefix.
 */
const cookieName = (secure: boolean): string => (secure ? '__Host-writ_session' : 'writ_session');
const sessionMs = 12 * 3_600_000;
/** The newest stay: who signs in again and again does not fill the store. */
const sessionsOfToken = 100;

type Known = Required<Caller>;

/** @throws FLEET_TOKEN_REFUSED without credentials that are good now; FLEET_IDENTITY_REFUSED; FLEET_REFUSED_OFTEN */
export async function callerOf(parts: CallerParts, asking: Asking): Promise<Known> {
  const { headers, ip: address } = asking;
  const named = await namedByProxy(parts, asking, hasCredential(headers));
  if (named !== undefined) return named;
  const bearer = bearerOf(headers);
  const session = sessionOf(headers, parts.secure);
  const credential = bearer ?? session;
  if (credential === undefined) throw tokenRefused('missing', 'people');
  return parts.bound.guard({ address, credential }, () =>
    bearer === undefined ? ofSession(parts, credential) : ofToken(parts, bearer),
  );
}

/** No look into the store and no guess: a person whom a proxy names is kept out by nobody's refusals, and a word refused counts. */
async function namedByProxy(
  { identity: rule, bound }: CallerParts,
  asking: Asking,
  isBeside: boolean,
): Promise<Known | undefined> {
  const found = rule && identityOf(rule, asking, isBeside);
  if (rule === undefined || found === undefined) return undefined;
  if ('person' in found) return { who: `person ${found.person}`, role: rule.role, by: 'proxy' };
  return bound.guard({ address: asking.ip, credential: `refused ${found.refused}` }, async () => {
    throw new WritError('FLEET_IDENTITY_REFUSED', `the header ${rule.header} came ${found.refused}`, {
      facts: { header: rule.header, actual: found.refused },
    });
  });
}

/** Also one that is malformed: it says that somebody meant to be known by it. */
function hasCredential({ authorization = '', cookie = '' }: IncomingHttpHeaders): boolean {
  return /^\s*bearer\b/i.test(authorization) || /(?:^|;)\s*(?:__Host-)?writ_session=/.test(cookie);
}

async function ofToken({ db, nowMs }: CallerParts, bearer: string): Promise<Known> {
  const { id, role } = await checkToken(db, bearer, 'people', nowMs);
  return { who: `token ${id}`, role: role || 'view', by: 'token' };
}

async function ofSession({ db, nowMs }: CallerParts, session: string): Promise<Known> {
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

export function requireRole(caller: Caller, needed: Role): void {
  if (mayAs(caller.role, needed)) return;
  throw new WritError('FLEET_FORBIDDEN', `this needs the role ${needed}`, {
    facts: { expected: needed, actual: caller.role },
  });
}

/** A browser says where a request comes from, and no page can change that word: another site's form is refused. */
export function requireSameOrigin(headers: IncomingHttpHeaders): void {
  if (headers['sec-fetch-site'] === 'same-origin') return;
  throw new WritError('FLEET_FORBIDDEN', 'a change without a token must come from a page of this server', {
    hint: 'Use a bearer token in a program, and a current browser.',
  });
}

/**
 * @returns the text of the cookie, which nothing keeps
 * @throws FLEET_IDENTITY_REFUSED where a proxy names who asks: the session would be refused beside its word
 */
export async function beginSession(parts: CallerParts, token: string, asking: Asking): Promise<string> {
  const { db, bound, nowMs } = parts;
  const { ip: address } = asking;
  await namedByProxy(parts, asking, true);
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

export async function endSession(
  { db, secure }: Pick<CallerParts, 'db' | 'secure'>,
  headers: IncomingHttpHeaders,
): Promise<void> {
  const session = sessionOf(headers, secure);
  if (session === undefined) return;
  const ended = tokenDigest(session);
  await transact(db, (trx) => trx.deleteFrom('sessions').where('digest', '=', ended).execute());
}

/** @param secure from hasSecurePage: without TLS a browser would not send the cookie back */
export function cookieText(session: string, secure: boolean): string {
  const life = session === '' ? 0 : sessionMs / 1000;
  const parts = [
    `${cookieName(secure)}=${session}`,
    'Path=/',
    'HttpOnly',
    'SameSite=Strict',
    `Max-Age=${life}`,
  ];
  return [...parts, ...(secure ? ['Secure'] : [])].join('; ');
}

/** @returns undefined for anything but one token of printable characters */
export function bearerOf({ authorization = '' }: IncomingHttpHeaders): string | undefined {
  return /^Bearer ([\x21-\x7e]{1,200})$/i.exec(authorization)?.[1];
}

function sessionOf({ cookie = '' }: IncomingHttpHeaders, secure: boolean): string | undefined {
  const begin = `${cookieName(secure)}=`;
  const found = cookie.split(/; */).find((part) => part.startsWith(begin));
  const text = found?.slice(begin.length) ?? '';
  return /^[\w-]{43}$/.test(text) ? text : undefined;
}
