// One exchange with a fleet server: enrols if necessary, sends one report, and answers one challenge of the counter. The
// reporter decides when.
import type { FleetConfig } from '../../core/config/config.js';
import { type ErrorCode, isWritError, WritError } from '../../core/errors.js';
import type { EnrolRequest, FleetReport } from '../../core/fleet/report.js';
import { fleetHeaders, fleetPaths, noFleet, signedParts } from '../../core/fleet/signed-request.js';
import { given } from '../../core/given.js';
import { readAuthorityFile } from '../../platform/net/authorities.js';
import { askHttp } from '../../platform/net/http-request.js';
import type { Proxies } from '../../platform/net/proxies.js';
import { readSmallFile } from '../../platform/read-file.js';
import type { Clock } from '../../platform/time/clock.js';
import {
  clampIntervalMs,
  judgeReply,
  maxAnswerBytes,
  readChallenge,
  readEnrolAnswer,
  readReportAnswer,
} from './fleet-answers.js';
import type { FleetEnrolment } from './fleet-files.js';
import type { FleetHostState } from './host-state.js';
import type { HostIdentity } from './make-report.js';
import { reportFingerprint } from './make-report.js';
import { signedHeaders } from './sign-request.js';

export interface Exchange {
  readonly config: FleetConfig;
  readonly proxies: Proxies;
  readonly state: FleetHostState;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface Acknowledged {
  /** Report interval in milliseconds that the server granted, within the limits. */
  readonly everyMs: number;
  /** Fingerprint of the stored report. */
  readonly news: string;
}

/**
 * Does one exchange with the server.
 * @param make creates the report; called after the enrolment
 * @throws WritError FLEET_*, DISK_*
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
    // The key is still valid at the new address, so both addresses belong to the same fleet.
    if (isMoved) state.setEnrolment({ ...known, url: config.url });
    return acknowledged;
  } catch (error) {
    if (!isMoved || !isWritError(error) || !unknownKeyCodes.has(error.code)) throw error;
    await enrol(exchange, identity);
    return report(exchange, make());
  }
}

/** The codes with which a fleet rejects a host that has enrolled with another fleet. */
const unknownKeyCodes: ReadonlySet<ErrorCode> = new Set(['FLEET_KEY_UNKNOWN', 'FLEET_SIGNATURE_REFUSED']);

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

/** Enrols the key of this host. @throws WritError FLEET_KEY_WAITING, and every other code of an enrolment */
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
  const enrolment: FleetEnrolment = { ...answer, url: config.url };
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
    // A host that was restored from a snapshot continues after the last counter that the server received.
    const { counter, nonce } = readChallenge(answer, url);
    ({ url, reply } = await postReport(exchange, body, state.nextCounter(counter), nonce));
    answer = judgeReply(reply, url, 'report');
  }
  if (answer.status === 409)
    throw new WritError('FLEET_COUNTER', `${url.href} again knows a higher counter of this key`, {
      facts: { url: url.href },
    });
  const { everyMs, outcomes } = readReportAnswer(answer, url);
  const news = reportFingerprint(made);
  state.acknowledge(outcomes, { atMs: clock.nowMs(), news });
  return { everyMs: clampIntervalMs(config.everyMs, everyMs), news };
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
  /** Token of an enrolment. A server reads the body of an unknown host only with narrow limits. */
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
