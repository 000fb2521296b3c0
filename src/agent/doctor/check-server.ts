// `writ doctor`, checks `server`, `clock` and `trust`: each mirror, the clock compared with the mirrors, and the trusted metadata. Requests
// the timestamp metadata of each mirror once, with short deadlines, for its status and its Date; the body is discarded. The judge*
// functions are pure.
import type { AgentConfig, MirrorConfig } from '../../core/config/config.js';
import { errorCodes } from '../../core/error-codes.js';
import { toWritError } from '../../core/errors.js';
import { maxCreatedAheadMs, metadataBytesByRole } from '../../core/limits.js';
import { classifyRefreshFailure } from '../../core/status/freshness.js';
import type { StatusReport } from '../../core/status/status.js';
import { timeLeft, utcTimeText } from '../../core/text/iso-time.js';
import { renewalOf } from '../../core/tuf/metadata-checks.js';
import { certificateEndsAtMs } from '../../platform/net/certificate.js';
import { type HttpClient, openHttpClient } from '../../platform/net/http-client.js';
import { createProxies } from '../../platform/net/proxies.js';
import { readSmallFile } from '../../platform/read-file.js';
import { openRepositorySource } from '../../trust/sources/repository-source.js';
import { readCa } from '../startup/open-host.js';
import { type Checks, type DoctorContext, reportOf, withoutConfig } from './doctor-context.js';
import { type CheckFailure, couldNotCheck, fail, failOf, type Judged, ok, warn } from './judged.js';

/**
 * Sends the requests to all mirrors at once, before it returns, because `clock` and `server` judge the same responses.
 * @returns the checks `clock`, `trust` and `server`; without a valid configuration the last two are skipped
 */
export async function serverChecks(context: DoctorContext): Promise<Checks> {
  const { config } = context;
  const mirrors = await Promise.all(
    config?.repository.map((mirror) => checkMirror(mirror, { ...context, config })) ?? [],
  );
  const aheadMs = mirrors.map((mirror) => mirror.aheadMs).find((one) => one !== undefined);
  const behindSignedMs = reportOf(context)?.clock?.behindMs;
  return [
    ['clock', () => judgeClock({ ...context, aheadMs, behindSignedMs, nowMs: context.clock.nowMs() })],
    ['trust', () => (config === undefined ? withoutConfig : examineTrust(config, context))],
    ['server', () => (config === undefined ? withoutConfig : judgeMirrors(mirrors))],
  ];
}

export interface MirrorFacts {
  readonly url: string;
  /** The answer to a request for the timestamp metadata. */
  readonly answer?: { readonly status: number; readonly tookMs: number };
  readonly error?: CheckFailure;
  /** End of the server's certificate, epoch milliseconds; left out without TLS. */
  readonly certificateEndsAtMs?: number | undefined;
  /** The time of this host at the answer, epoch milliseconds. */
  readonly nowMs: number;
  /** This host's clock minus the server's Date, milliseconds. */
  readonly aheadMs?: number | undefined;
}

export interface MirrorContext extends Pick<DoctorContext, 'clock' | 'version'> {
  readonly config: AgentConfig;
}

async function checkMirror(mirror: MirrorConfig, context: MirrorContext): Promise<MirrorFacts> {
  const url = new URL(mirror.url.endsWith('/') ? mirror.url : `${mirror.url}/`);
  try {
    const facts =
      url.protocol === 'file:'
        ? await readTimestamp(url, context)
        : await requestTimestamp(url, mirror, context);
    return { ...facts, certificateEndsAtMs: await certificateOf(url, context) };
  } catch (error) {
    return { url: url.href, error: toWritError(error), nowMs: context.clock.nowMs() };
  }
}

const connectTimeoutMs = 5000;
const totalTimeoutMs = 15_000;
const timestampPath = 'metadata/timestamp.json';

async function requestTimestamp(
  url: URL,
  mirror: MirrorConfig,
  context: MirrorContext,
): Promise<MirrorFacts> {
  const { clock } = context;
  const client = openMirrorClient(url, mirror, context);
  try {
    await client.load();
    const startedMs = clock.monotonicMs();
    const exchange = await client.open({ path: timestampPath, totalTimeoutMs });
    const [tookMs, nowMs] = [clock.monotonicMs() - startedMs, clock.nowMs()];
    const { dateMs } = exchange;
    await exchange.end();
    const facts = { url: url.href, answer: { status: exchange.status, tookMs }, nowMs };
    // Assume that the server set Date in the middle of the request; Date has whole seconds, so its mean error is 500 ms.
    return dateMs === undefined ? facts : { ...facts, aheadMs: nowMs - tookMs / 2 - (dateMs + 500) };
  } finally {
    await client.close();
  }
}

/**
 * An HTTP client with the settings of the agent for this mirror, but with a shorter connect timeout.
 * @throws WritError for a `ca` file or a proxy that cannot be used
 */
export function openMirrorClient(
  url: URL,
  mirror: MirrorConfig,
  { clock, version, config }: MirrorContext,
): HttpClient {
  return openHttpClient(url, {
    limits: { ...config.transport, connectTimeoutMs },
    clock,
    version,
    redirects: mirror.redirects,
    proxies: createProxies(config.proxy),
    ...(mirror.ca === undefined ? {} : { ca: readCa(mirror.ca) }),
  });
}

async function readTimestamp(url: URL, { clock, version, config }: MirrorContext): Promise<MirrorFacts> {
  const source = openRepositorySource(url.href, { clock, version });
  const startedMs = clock.monotonicMs();
  try {
    const maxBytes = metadataBytesByRole(config.metadataLimits).timestamp;
    const { kind } = await source.fetch(timestampPath, { maxBytes });
    const answer = { status: kind === 'absent' ? 404 : 200, tookMs: clock.monotonicMs() - startedMs };
    return { url: url.href, answer, nowMs: clock.nowMs() };
  } finally {
    await source.close();
  }
}

async function certificateOf(url: URL, { config }: MirrorContext): Promise<number | undefined> {
  if (url.protocol !== 'https:') return undefined;
  const port = url.port === '' ? 443 : Number(url.port);
  const proxies = createProxies(config.proxy);
  return certificateEndsAtMs({ host: hostOf(url), port, timeoutMs: connectTimeoutMs, proxies });
}

/** @returns the host name in lower case, without the brackets of an IPv6 address */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
}

/** @returns a finding for each mirror; a failure is only a warning while another mirror answers */
export function judgeMirrors(mirrors: readonly MirrorFacts[]): Judged[] {
  const judged = mirrors.map(judgeMirror);
  const someAnswers = judged.some(({ state }) => state !== 'FAIL');
  return judged.map((one) => (one.state === 'FAIL' && someAnswers ? { ...one, state: 'warn' } : one));
}

const dayMs = 86_400_000;
const slowMs = 3000;
const certificateMarginMs = 14 * dayMs;

function judgeMirror({ url, answer, error, certificateEndsAtMs: endsAtMs, nowMs }: MirrorFacts): Judged {
  if (error !== undefined || answer === undefined)
    return failOf(error ?? { code: 'SERVER_UNREACHABLE', message: `${url} did not answer`, hint: '' });
  const { status, tookMs } = answer;
  const text = `${url}: ${status} in ${Math.round(tookMs)} ms`;
  if (status !== 200 && status !== 304)
    return fail(text, 'check `repository`: metadata/timestamp.json must be below it');
  const leftMs = endsAtMs === undefined ? undefined : endsAtMs - nowMs;
  const whole =
    leftMs === undefined ? text : `${text}, certificate ${timeLeft(leftMs)}${leftMs > 0 ? ' left' : ''}`;
  if (leftMs !== undefined && leftMs < certificateMarginMs)
    return warn(whole, 'renew the certificate of the server');
  return tookMs > slowMs ? warn(whole, `curl -sv ${url}metadata/timestamp.json`) : ok(whole);
}

/** Smaller differences may come from the whole seconds of Date and the duration of the request. */
const quietSkewMs = 2500;

export interface ClockFacts extends Pick<MirrorFacts, 'aheadMs'> {
  /** Milliseconds by which the clock is behind the newest signed time of the repository; undefined if it is not behind. */
  readonly behindSignedMs?: number | undefined;
  readonly nowMs: number;
  /** The release of this program, epoch milliseconds; left out: no comparison. */
  readonly releasedAtMs?: number | undefined;
}

/** @returns a failure for a clock that may reject valid releases or accept expired metadata; a warning for a smaller difference */
export function judgeClock({ aheadMs, behindSignedMs, nowMs, releasedAtMs }: ClockFacts): Judged {
  const next = 'timedatectl set-ntp true';
  if (releasedAtMs !== undefined && nowMs < releasedAtMs - dayMs) {
    const [now, released] = [utcTimeText(nowMs), utcTimeText(releasedAtMs).slice(0, 10)];
    return fail(`it is ${now}, before the release of this version on ${released}`, next, 'CLOCK_BEHIND');
  }
  if (behindSignedMs !== undefined)
    return fail(
      `${secondsText(behindSignedMs)} behind the newest signature of the repository`,
      next,
      'CLOCK_BEHIND',
    );
  if (aheadMs === undefined)
    return ok('not behind the newest signature of the repository; no server sent its time');
  const skewMs = Math.abs(aheadMs);
  const text = `${secondsText(skewMs)} ${aheadMs < 0 ? 'behind' : 'ahead of'} the server`;
  if (skewMs > maxCreatedAheadMs) return fail(text, next);
  return skewMs > quietSkewMs ? warn(text, next) : ok('that of the server');
}

function secondsText(ms: number): string {
  if (ms < 120_000) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : timeLeft(ms);
}

const maxRootBytes = 512_000;

function examineTrust({ root }: AgentConfig, context: DoctorContext): Judged {
  const report = reportOf(context);
  if (report === undefined) {
    const { hostStatus } = context;
    const message = 'why' in hostStatus ? hostStatus.why.message : 'no status';
    return couldNotCheck(message.split('\n', 1)[0] ?? '');
  }
  const read = readSmallFile(root, { maxBytes: maxRootBytes });
  return judgeTrust({
    root,
    roles: report.trust,
    untrusted: report.untrusted?.some(({ active }) => active) === true,
    failure: findTrustFailure(report),
    nowMs: context.clock.nowMs(),
    rootUnread: read.kind === 'read' ? undefined : read.why,
  });
}

export interface TrustFacts {
  /** Path of the bootstrap root. */
  readonly root: string;
  /** Why it cannot be read. */
  readonly rootUnread?: string | undefined;
  readonly roles: StatusReport['trust'];
  /** Whether an active release is signed by no key that is trusted now. */
  readonly untrusted: boolean;
  /** Why the received metadata was rejected, or the configured root is not trusted. */
  readonly failure?: CheckFailure | undefined;
  readonly nowMs: number;
}

const rootCodes: ReadonlySet<string> = new Set(['ROOT_NOT_LINKED', 'ROOT_UNUSABLE', 'TRUST_STORE_DAMAGED']);

/** @returns the problem of the last cycle, else the remembered code of an earlier refusal with the general text of that code */
function findTrustFailure({ problems, freshness }: StatusReport): CheckFailure | undefined {
  const problem = problems.find(
    ({ code }) => rootCodes.has(code) || classifyRefreshFailure(code) === 'refused',
  );
  if (problem !== undefined || freshness.refused === undefined) return problem;
  const { code } = freshness.refused;
  return { code, message: errorCodes[code].meaning, hint: errorCodes[code].hint };
}

const offlineMarginMs = 14 * dayMs;

/** @returns the gravest fault: an untrusted active release, rejected metadata, no metadata, or expired roles */
export function judgeTrust({ root, rootUnread, roles, untrusted, failure, nowMs }: TrustFacts): Judged {
  if (untrusted) {
    const text = 'the active release was signed by a key that is no longer trusted';
    return fail(text, 'writ status', 'UNTRUSTED_ACTIVE');
  }
  if (failure !== undefined) return failOf(failure);
  if (roles.length === 0) return judgeBeforeContact(root, rootUnread);
  const left = roles.map((one) => ({ ...one, leftMs: one.expiresAtMs - nowMs }));
  const entries = left.map(({ role, version, leftMs }) => `${role} v${version} ${timeLeft(leftMs)}`);
  const text = `${entries.join(', ')} left`;
  const expired = left.filter(({ leftMs }) => leftMs <= 0).map(({ role }) => role);
  if (expired[0] !== undefined) {
    const what = `${expired.join(', ')} expired: no new policy is accepted, the active one stays`;
    return fail(what, renewalOf(expired[0]), 'METADATA_EXPIRED');
  }
  const soon = left.find(({ role, leftMs }) => leftMs < offlineMarginMs && !isOnline(role));
  return soon === undefined ? ok(text) : warn(text, renewalOf(soon.role));
}

function judgeBeforeContact(root: string, rootUnread: string | undefined): Judged {
  if (rootUnread === undefined)
    return warn(`${root} exists; nothing was fetched and verified yet`, 'writ pull');
  const next = `copy metadata/1.root.json of the repository to ${root}`;
  return fail(`${root} cannot be read: ${rootUnread}`, next, 'ROOT_MISSING');
}

/** A server re-signs these roles continuously, so a near expiry is normal. */
function isOnline(role: string): boolean {
  return role === 'timestamp' || role === 'snapshot';
}
