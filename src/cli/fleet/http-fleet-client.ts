// Sends the queries of commands to a fleet server over HTTP, with the token of a file. The token is in one header and nowhere else,
// and a redirect is never followed. A reply that no fleet server sends is FLEET_UNANSWERED.

import { errorCodes } from '../../core/error-codes.js';
import { type ErrorCode, WritError } from '../../core/errors.js';
import type { TokenLine } from '../../core/fleet/token-answers.js';
import { given } from '../../core/given.js';
import { certificateTimeHint, isCertificateErrno } from '../../platform/net/connect-failure.js';
import { askHttp, type HttpReply } from '../../platform/net/http-request.js';
import { createProxies } from '../../platform/net/proxies.js';
import { readSmallFile } from '../../platform/read-file.js';
import type { Clock } from '../../platform/time/clock.js';
import type { FleetClient, HistorySelector } from './fleet-client.js';
import { readAuthorities } from './read-authorities.js';

export interface HttpFleetClientOptions {
  readonly url: string;
  readonly tokenFile: string;
  /** PEM of the certificate authorities; undefined: those of the system. */
  readonly caFile?: string;
  readonly clock: Clock;
}

const timeoutMs = 30_000;
const maxAnswerBytes = 32_000_000;
const maxTokenBytes = 4096;

/**
 * Reads the token and the authorities at once, and connects at the first query.
 * @throws WritError USAGE for the URL, the token file or the authorities, TLS_INVALID; from queries: FLEET_UNANSWERED
 * or the error of the server
 */
export function openHttpFleetClient({ url, tokenFile, caFile, clock }: HttpFleetClientOptions): FleetClient {
  const base = parseServerUrl(url);
  const trusted = caFile === undefined ? {} : { ca: readServerAuthorities(base, caFile) };
  const authorization = `Bearer ${readToken(tokenFile)}`;
  const send = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const target = new URL(path, base);
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const headers = { authorization, ...type };
    const bounds = { timeoutMs, maxAnswerBytes, clock, proxies: createProxies() };
    const reply = await askHttp({ url: target, method, headers, ...sent, ...trusted, ...bounds });
    if (reply.kind === 'failed') throw unansweredError(target, reply);
    return readReply<T>(reply, target);
  };
  const get = <T>(
    path: string,
    query: Readonly<Record<string, string | number | undefined>> = {},
  ): Promise<T> => {
    const known = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    );
    return send<T>(
      'GET',
      known.length === 0 ? path : `${path}?${new URLSearchParams(known as [string, string][])}`,
    );
  };
  return {
    summary: () => get('v1/summary'),
    hosts: ({ where, after, limit }) =>
      get('v1/hosts', { where: where === '' ? undefined : where, after, limit }),
    host: (name) => get(`v1/hosts/${encodeURIComponent(name)}`),
    history: ({ of, after, limit }) => get(`${historyPathOf(of)}/history`, { after, limit }),
    wait: ({ sinceMs, ...query }) => get('v1/wait', { ...query, since: sinceMs }),
    log: (query) => get('v1/log', query),
    tokens: async () => (await get<{ tokens: readonly TokenLine[] }>('v1/tokens')).tokens,
    createToken: (token) => send('POST', 'v1/tokens', token),
    revokeToken: (id) => send('DELETE', `v1/tokens/${encodeURIComponent(id)}`),
    retireHostsOf: (id, afterKey) =>
      send('POST', `v1/tokens/${encodeURIComponent(id)}/retire-hosts`, afterKey === '' ? {} : { afterKey }),
    changeHost: (name, verb) => send('POST', `v1/hosts/${encodeURIComponent(name)}/${verb}`),
    close: () => Promise.resolve(),
  };
}

function historyPathOf(of: HistorySelector): string {
  if ('host' in of) return `v1/hosts/${encodeURIComponent(of.host)}`;
  return `v1/releases/${encodeURIComponent(of.bundle)}/${encodeURIComponent(of.channel)}/${of.serial}`;
}

/** @throws WritError USAGE for http to another machine, because a token is sent over TLS only, unless it stays on this machine */
function parseServerUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLoopback = /^(?:127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/.test(url?.hostname ?? '');
  if (url?.protocol !== 'https:' && !(url?.protocol === 'http:' && isLoopback))
    throw new WritError('USAGE', '--url must be an https address, or http on this machine', {
      hint: 'For example https://fleet.example.net or http://127.0.0.1:8090.',
    });
  if (url.username !== '' || url.search !== '' || url.hash !== '')
    throw new WritError('USAGE', '--url must not have a user, a query or a fragment');
  return new URL(url.href.endsWith('/') ? url.href : `${url.href}/`);
}

function readToken(path: string): string {
  const read = readSmallFile(path, { maxBytes: maxTokenBytes });
  const token = read.kind === 'read' ? read.bytes.toString('utf8').trim() : '';
  if (/^writ_people_[\x21-\x7e]{1,180}$/.test(token)) return token;
  const why = read.kind === 'read' ? 'it contains no token for people' : read.why;
  throw new WritError('USAGE', `the token file ${path} cannot be used: ${why}`, {
    hint: 'It contains one line, the token that `writ fleet token create --for people` printed once.',
  });
}

function readServerAuthorities({ protocol }: URL, path: string): string {
  if (protocol !== 'https:') throw new WritError('USAGE', '--ca is only used with an https address');
  return readAuthorities(path);
}

function readReply<T>({ status, body }: { readonly status: number; readonly body: string }, url: URL): T {
  const data = parseJsonObject(body);
  if (data === undefined) throw unansweredError(url, { reason: `status ${status}, not JSON` });
  if (status >= 200 && status < 300) return data as T;
  const { code, message, hint } = data as Readonly<Record<string, unknown>>;
  if (typeof code !== 'string' || !Object.hasOwn(errorCodes, code))
    throw unansweredError(url, { reason: `status ${status}` });
  throw new WritError(code as ErrorCode, String(message).slice(0, 500), {
    ...(typeof hint === 'string' ? { hint: hint.slice(0, 500) } : {}),
    facts: { status },
  });
}

function parseJsonObject(body: string): object | undefined {
  try {
    const data: unknown = JSON.parse(body);
    return typeof data === 'object' && data !== null ? data : undefined;
  } catch {
    return undefined;
  }
}

const certificateHint =
  'Give --ca FILE (or WRIT_FLEET_CA) with the authority that signed the certificate, and --url with a name in it.';

type Unanswered = Omit<Extract<HttpReply, { readonly kind: 'failed' }>, 'kind'>;

function unansweredError(url: URL, { reason, hint }: Unanswered): WritError {
  const timeHint = hint ?? certificateTimeHint(reason);
  const isCertificate = timeHint === undefined && isCertificateErrno(reason);
  const text = isCertificate ? `the certificate of the server is not trusted (${reason})` : reason;
  return new WritError('FLEET_UNANSWERED', `${url.origin}${url.pathname}: ${text}`, {
    facts: { reason },
    ...given({ hint: isCertificate ? certificateHint : timeHint }),
  });
}
