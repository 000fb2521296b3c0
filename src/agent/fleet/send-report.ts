// One exchange with a fleet server: enrols where that is still to be done, then sends one report, and answers a challenge of
// its counter once. Owns the order; when it is asked to is the reporter's.
import type { FleetConfig } from '../../core/config/config.js';
import { type ErrorCode, isWritError, WritError } from '../../core/errors.js';
import type { EnrolRequest, FleetReport } from '../../core/fleet/report.js';
import { fleetHeaders, fleetPaths, noFleet, signedParts } from '../../core/fleet/signed-request.js';
import { given } from '../../core/given.js';
import { readAuthorityFile } from '../../platform/net/authorities.js';
import { askHttp } from '../../platform/net/http-ask.js';
import type { Proxies } from '../../platform/net/proxies.js';
import { readSmallFile } from '../../platform/read-file.js';
import type { Clock } from '../../platform/time/clock.js';
import {
  grantedMs,
  judgeReply,
  maxAnswerBytes,
  readChallenge,
  readEnrolAnswer,
  readReportAnswer,
} from './fleet-answers.js';
import type { Enrolment } from './fleet-files.js';
import type { HostState } from './host-state.js';
import type { HostIdentity } from './make-report.js';
import { newsOf } from './make-report.js';
import { signedHeaders } from './sign-request.js';

export interface Exchange {
  readonly config: FleetConfig;
  readonly proxies: Proxies;
  readonly state: HostState;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface Acknowledged {
  /** What the server granted, within what it may. */
  readonly everyMs: number;
  readonly news: string;
}

/**
 * @param make asked when the host may report
 * @returns what was stored
 * @throws WritError FLEET_*
 */
export async function sendReport(
  exchange: Exchange,
  identity: HostIdentity,
  make: () => FleetReport,
): Promise<Acknowledged> {
  const { state, config } = exchange;
  const known = state.enrolment();
  if (known?.state !== 'accepted') await enrol(exchange, identity);
  const isMoved = known?.state === 'accepted' && known.url !== config.url;
  try {
    const acknowledged = await report(exchange, make());
    // The same fleet under another address.
    if (isMoved) state.setEnrolment({ ...known, url: config.url });
    return acknowledged;
  } catch (error) {
    if (!isMoved || !isWritError(error) || !ofOthers.has(error.code)) throw error;
    await enrol(exchange, identity);
    return report(exchange, make());
  }
}

/** What a fleet says to a host that has enrolled with another one. */
const ofOthers: ReadonlySet<ErrorCode> = new Set(['FLEET_KEY_UNKNOWN', 'FLEET_SIGNATURE_REFUSED']);

const maxTokenBytes = 4096;

/** @throws WritError FLEET_TOKEN_UNREADABLE */
function readToken(path: string): string {
  const verdict = readSmallFile(path, { maxBytes: maxTokenBytes });
  const text = verdict.kind === 'read' ? verdict.bytes.toString('latin1').trim() : '';
  if (/^[\x21-\x7e]{1,512}$/.test(text)) return text;
  const lines = text.split('\n').length;
  const content =
    text === ''
      ? 'it is empty'
      : lines > 1
        ? `it has ${lines} lines, and a token is one line`
        : 'it is not a token';
  const why = verdict.kind === 'read' ? content : verdict.why;
  throw new WritError('FLEET_TOKEN_UNREADABLE', `${path}: ${why}`, { facts: { path } });
}

/** @throws WritError FLEET_KEY_WAITING, and every other code of an enrolment */
async function enrol(exchange: Exchange, { host, labels, installId }: HostIdentity): Promise<void> {
  const { state, config } = exchange;
  const request: EnrolRequest = {
    ...{ schema: 1, type: 'fleet.enrol', token: readToken(config.tokenFile) },
    ...{ publicKey: state.key.publicKey, host, labels, installId },
    ...(config.stay === 'ephemeral' ? { ephemeral: true } : {}),
    ...(config.claim === 'replaces' ? { replaces: true } : {}),
  };
  const { url, reply } = await post(exchange, {
    ...{ path: fleetPaths.enrol, body: JSON.stringify(request), fleet: noFleet },
    ...{ keyId: state.key.fingerprint, counter: state.nextCounter(), bearer: request.token },
  });
  const answer = readEnrolAnswer(judgeReply(reply, url, 'enrol'), url);
  const enrolment: Enrolment = { ...answer, url: config.url };
  state.setEnrolment(enrolment);
  if (enrolment.state === 'accepted') return;
  throw new WritError('FLEET_KEY_WAITING', `${config.url} waits for a person to approve this host`, {
    facts: { url: config.url, keyId: enrolment.keyId },
  });
}

async function report(exchange: Exchange, made: FleetReport): Promise<Acknowledged> {
  const { state, config, clock } = exchange;
  const body = JSON.stringify(made);
  const first = await postReport(exchange, body, state.nextCounter());
  let { url, reply } = first;
  let answer = judgeReply(reply, url, 'report');
  if (answer.status === 409) {
    // A machine that was restored from a snapshot: the number goes on behind the last one that was heard.
    const { counter, nonce } = readChallenge(answer, url);
    ({ url, reply } = await postReport(exchange, body, state.nextCounter(counter), nonce));
    answer = judgeReply(reply, url, 'report');
  }
  if (answer.status === 409)
    throw new WritError('FLEET_COUNTER', `${url.href} again knows a higher counter of this key`, {
      facts: { url: url.href },
    });
  const { everyMs, outcomes } = readReportAnswer(answer, url);
  const news = newsOf(made);
  state.acknowledge(outcomes, { atMs: clock.nowMs(), news });
  return { everyMs: grantedMs(config.everyMs, everyMs), news };
}

function postReport(exchange: Exchange, body: string, counter: number, nonce?: string) {
  const { fleet = noFleet, keyId = '' } = exchange.state.enrolment() ?? {};
  return post(exchange, { path: fleetPaths.reports, body, fleet, keyId, counter, ...given({ nonce }) });
}

interface Posted {
  readonly path: string;
  readonly body: string;
  readonly fleet: string;
  readonly keyId: string;
  readonly counter: number;
  readonly nonce?: string;
  /** Of an enrolment: a server reads a body of a stranger with narrow bounds. */
  readonly bearer?: string;
}

async function post(exchange: Exchange, request: Posted) {
  const { config, state, clock, timeoutMs, signal, proxies } = exchange;
  const url = new URL(request.path, config.url.endsWith('/') ? config.url : `${config.url}/`);
  const { body, fleet, keyId, counter, nonce, bearer } = request;
  const method = 'POST';
  const signed = await signedHeaders({
    ...{ method, url, body, keyId, createdMs: clock.nowMs(), sign: state.key.sign },
    headers: {
      ...{ [fleetHeaders.fleet]: fleet, [fleetHeaders.counter]: String(counter) },
      ...(nonce === undefined ? {} : { [fleetHeaders.nonce]: nonce }),
    },
    parts: nonce === undefined ? signedParts.first : signedParts.challenged,
  });
  const reply = await askHttp({
    ...{ url, method, body, timeoutMs, maxAnswerBytes, clock, proxies },
    headers: {
      ...{ ...signed, 'content-type': 'application/json' },
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    },
    ...given({ ca: readCa(config.ca), signal }),
  });
  return { url, reply };
}

/** @throws WritError FLEET_CERTIFICATE */
function readCa(path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  const verdict = readAuthorityFile(path);
  if (verdict.kind === 'read') return verdict.pem;
  throw new WritError('FLEET_CERTIFICATE', `${path} cannot be used: ${verdict.why}`, { facts: { path } });
}
