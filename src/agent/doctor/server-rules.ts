// Judgements of `writ doctor` about what lies beyond the host: each mirror, the clock against it, what is trusted, and
// whether its name can be resolved without a worker that waits for policy. Facts in, one finding out; pure.

import { maxCreatedAheadMs } from '../../core/limits.js';
import type { Judged } from '../../core/status/doctor.js';
import type { StatusReport } from '../../core/status/status.js';
import { renewalOf } from '../../core/tuf/metadata-checks.js';

const dayMs = 86_400_000;

export interface MirrorFacts {
  readonly url: string;
  /** Of a request for the newest timestamp. */
  readonly answer?: { readonly status: number; readonly tookMs: number };
  readonly error?: { readonly code: string; readonly message: string; readonly hint: string };
  /** Of the server's certificate, epoch milliseconds; left out without TLS. */
  readonly certificateEndsAtMs?: number;
  /** Of this host, at the answer. */
  readonly nowMs: number;
}

/** @returns a finding for each mirror; one that is away is a warning while another one answers */
export function judgeMirrors(mirrors: readonly MirrorFacts[]): Judged[] {
  const judged = mirrors.map(judgeMirror);
  const someAnswers = judged.some(({ state }) => state !== 'FAIL');
  return judged.map((one) => (one.state === 'FAIL' && someAnswers ? { ...one, state: 'warn' } : one));
}

const slowMs = 3000;
const certificateMarginMs = 14 * dayMs;

function judgeMirror({ url, answer, error, certificateEndsAtMs, nowMs }: MirrorFacts): Judged {
  if (answer === undefined) {
    const { code = 'SERVER_UNREACHABLE', message = `${url} did not answer`, hint = '' } = error ?? {};
    return { state: 'FAIL', text: message, next: hint, code };
  }
  const { status, tookMs } = answer;
  const text = `${url}: ${status} in ${Math.round(tookMs)} ms`;
  if (status !== 200 && status !== 304) {
    const next = 'look at `repository`: metadata/timestamp.json must be below it';
    return { state: 'FAIL', text, next };
  }
  const leftMs = certificateEndsAtMs === undefined ? undefined : certificateEndsAtMs - nowMs;
  const whole = leftMs === undefined ? text : `${text}, certificate ${Math.floor(leftMs / dayMs)} d left`;
  if (leftMs !== undefined && leftMs < certificateMarginMs)
    return { state: 'warn', text: whole, next: 'renew the certificate of the server' };
  if (tookMs > slowMs) return { state: 'warn', text: whole, next: `curl -sv ${url}metadata/timestamp.json` };
  return { state: 'ok', text: whole };
}

export interface ClockFacts {
  /** Of this host minus the server's Date, milliseconds; left out when no server said. */
  readonly aheadMs?: number;
  /** How far the clock is behind the greatest time that the repository has signed. */
  readonly behindSignedMs?: number;
}

/** The Date of a server counts whole seconds, and an answer takes its time. */
const quietSkewMs = 2500;

export function judgeClock({ aheadMs, behindSignedMs }: ClockFacts): Judged {
  const next = 'timedatectl set-ntp true';
  if (behindSignedMs !== undefined) {
    const text = `${secondsText(behindSignedMs)} behind what the repository has signed`;
    return { state: 'FAIL', text, next, code: 'CLOCK_BEHIND' };
  }
  if (aheadMs === undefined)
    return { state: 'ok', text: 'not behind what the repository has signed; no server told its time' };
  const skewMs = Math.abs(aheadMs);
  const text = `${secondsText(skewMs)} ${aheadMs < 0 ? 'behind' : 'ahead of'} the server`;
  if (skewMs > maxCreatedAheadMs) return { state: 'FAIL', text, next };
  if (skewMs > quietSkewMs) return { state: 'warn', text, next };
  return { state: 'ok', text: 'that of the server' };
}

function secondsText(ms: number): string {
  return ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}

export interface TrustFacts {
  /** Path of the bootstrap root. */
  readonly root: string;
  /** Why it cannot be read. */
  readonly rootUnread?: string;
  readonly roles: StatusReport['trust'];
  /** A release in use that keys of today do not vouch for. */
  readonly untrusted: boolean;
  readonly nowMs: number;
}

const offlineMarginMs = 14 * dayMs;

export function judgeTrust({ root, rootUnread, roles, untrusted, nowMs }: TrustFacts): Judged {
  if (untrusted) {
    const text = 'what is in use was signed by a key that is trusted no more';
    return { state: 'FAIL', text, next: 'writ status', code: 'UNTRUSTED_ACTIVE' };
  }
  if (roles.length === 0) return judgeBeforeContact(root, rootUnread);
  const left = roles.map((one) => ({ ...one, leftMs: one.expiresAtMs - nowMs }));
  const words = left.map(
    ({ role, version, leftMs }) => `${role} v${version} ${Math.floor(leftMs / dayMs)} d`,
  );
  const text = `${words.join(', ')} left`;
  const expired = left.filter(({ leftMs }) => leftMs <= 0).map(({ role }) => role);
  if (expired[0] !== undefined) {
    const what = `${expired.join(', ')} expired: no new policy is taken, the one in use stays`;
    return { state: 'FAIL', text: what, next: renewalOf(expired[0]), code: 'METADATA_EXPIRED' };
  }
  const soon = left.find(({ role, leftMs }) => leftMs < offlineMarginMs && !isOnline(role));
  if (soon !== undefined) return { state: 'warn', text, next: renewalOf(soon.role) };
  return { state: 'ok', text };
}

function judgeBeforeContact(root: string, rootUnread: string | undefined): Judged {
  if (rootUnread !== undefined) {
    const next = `copy metadata/1.root.json of the repository to ${root}`;
    return { state: 'FAIL', text: `${root} cannot be read: ${rootUnread}`, next, code: 'ROOT_MISSING' };
  }
  return { state: 'warn', text: `${root} is there; nothing was fetched and verified yet`, next: 'writ pull' };
}

/** Signed anew by a server all the time: their ends are near by nature. */
function isOnline(role: string): boolean {
  return role === 'timestamp' || role === 'snapshot';
}

export interface NameFacts {
  /** Host names of the mirrors that are names, in small letters. */
  readonly names: readonly string[];
  /** Names that /etc/hosts knows. */
  readonly known: readonly string[];
  /** Of resolv.conf. */
  readonly nameservers: readonly string[];
  /** Groups whose workers answer for names. */
  readonly resolverGroups: readonly string[];
}

/** A host that asks its own worker for the name of the repository waits for ever: name, policy, resolver, name. */
export function judgeNames({ names, known, nameservers, resolverGroups }: NameFacts): Judged {
  const asked = names.filter((name) => !known.includes(name));
  if (asked.length === 0) return { state: 'ok', text: 'the repository is reached without asking for a name' };
  const own = nameservers.length > 0 && nameservers.every(isOwnResolver);
  const [group] = resolverGroups;
  if (!own || group === undefined)
    return { state: 'ok', text: `${asked.join(', ')}: asked of no worker of Writ` };
  const text = `${asked.join(', ')} is asked of ${nameservers.join(', ')} alone, and ${group} answers there: no policy without a name, no name without policy`;
  return { state: 'warn', text, next: 'give /etc/hosts a line for it, or resolv.conf a second nameserver' };
}

/** systemd-resolved asks others; any other resolver on a loopback address may be the worker. */
function isOwnResolver(address: string): boolean {
  if (address === '127.0.0.53' || address === '127.0.0.54') return false;
  return address === '::1' || address.startsWith('127.');
}
