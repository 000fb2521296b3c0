// Creates the host report from the status by an allow-list: a new member of the status is not sent until it is listed here.
// Pure functions. Only valid names and codes are sent; other text only as `fleet.detail` allows, and bounded. Too long reports
// are truncated with REPORT_TRUNCATED, so that a report is always created.
import { createHash } from 'node:crypto';
import { outcomeOfKind } from '../../core/cycle/problem.js';
import { errorCodes } from '../../core/error-codes.js';
import type {
  ActiveState,
  BakeState,
  BundleReport,
  FleetReport,
  GroupReport,
  OfferedState,
  OutcomeReport,
  ReportDetail,
} from '../../core/fleet/report.js';
import { fleetBounds } from '../../core/fleet/report.js';
import { given, withoutUndefined } from '../../core/given.js';
import { isName } from '../../core/names.js';
import { judgeHostHealth } from '../../core/status/host-health.js';
import { createMissedReleaseError, type MissedStatus } from '../../core/status/missed-release.js';
import type { BundleStatus, StatusReport, WorkerStatus } from '../../core/status/status.js';
import { fitReport, unnamedFinding } from './fit-report.js';

/** The identity that a host sends to its fleet server. */
export interface HostIdentity {
  readonly installId: string;
  /** Boot id of the kernel; only its digest is sent. */
  readonly bootId: string;
  readonly host: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** The sender of a report: a running agent, or a pull on a host without an agent, which is neither stopped nor unhealthy. */
export type ReportSender = 'agent' | 'pull';

/** A group, its bundles, and whether an answer or a probe can confirm which generation it uses. */
export interface BundleUser {
  readonly group: string;
  readonly uses: readonly string[];
  readonly proof: 'can confirm' | 'none';
}

/** The members of a report that are not in the status. */
export interface ReportFacts {
  readonly identity: HostIdentity;
  readonly everyMs: number;
  readonly detail: ReportDetail;
  /** Digest of the active manifest in hex, by bundle. */
  readonly manifests: ReadonlyMap<string, string>;
  /** Digest of the trusted root file in hex. */
  readonly rootDigest?: string | undefined;
  readonly users: readonly BundleUser[];
  readonly sender: ReportSender;
  readonly outcomes: readonly OutcomeReport[];
  /** Number of outcomes that were dropped unsent. */
  readonly dropped: number;
}

const states = ['NOTHING_ACTIVE', 'NO_AGENT', 'STALE', 'FROZEN', 'REFUSED', 'EXPIRES_SOON'];

/**
 * Creates the host report from the status. Pure; the same input gives the same report. Throws nothing.
 * @param status the current status. Its fleet problems are left out, because each report would otherwise change the next one
 * @returns the report within its size limits. Bundles, groups and roles with an invalid name are left out; an invalid host or
 *   version is `?`. A truncated report, or one with `dropped` above 0, has the finding REPORT_TRUNCATED. `agent` is `pull` for a
 *   pull; `root` is left out without its version or digest
 */
export function makeReport(status: StatusReport, facts: ReportFacts): FleetReport {
  const problems = status.problems.filter(({ code }) => !code.startsWith('FLEET_'));
  const health = judgeHostHealth({
    ...status,
    problems,
    ...(facts.sender === 'pull' ? { agent: 'run' } : {}),
  });
  const { identity, dropped } = facts;
  const root = status.trust.find(({ role }) => role === 'root');
  const findings = [...new Set(health.findings.map(({ code }) => codeOf(code)))];
  return fitReport(
    withoutUndefined<FleetReport>({
      schema: 1,
      type: 'fleet.report',
      version: nameOf(status.version),
      host: nameOf(identity.host),
      labels: identity.labels,
      installId: nameOf(identity.installId),
      bootId: createHash('sha256').update(identity.bootId).digest('hex'),
      atMs: status.atMs,
      everyMs: facts.everyMs,
      agent:
        facts.sender === 'pull' ? 'pull' : oneOf(['init', 'run', 'shutdown', 'stop'] as const, status.agent),
      health: health.level,
      findings,
      generation: status.generation,
      root: root && facts.rootDigest ? { version: root.version, sha256: facts.rootDigest } : undefined,
      trust: status.trust
        .filter(({ role }) => isRole(role))
        .map(({ role, version, expiresAtMs }) => ({ role, version, expiresAtMs })),
      freshness: oneOf(['fresh', 'stale', 'frozen', 'refused'] as const, status.freshness.state),
      bundles: status.bundles
        .filter(({ bundle, channel }) => isName(bundle) && isName(channel))
        .map((one) => bundleReport({ ...status, problems }, one, facts)),
      groups: (status.groups ?? []).filter(({ group }) => isName(group)).map(groupReport),
      outcomes: facts.outcomes,
    }),
    dropped > 0,
  );
}

/** @returns a digest of the report without its times. Two reports with the same digest differ in no other member. */
export function reportFingerprint(report: FleetReport): string {
  const { atMs: _, everyMs: _every, trust: _trust, outcomes, bundles, ...rest } = report;
  const told = bundles.map(({ offered, ...one }) => ({
    ...one,
    offered: offered && { ...offered, atMs: 0 },
  }));
  const text = JSON.stringify({ ...rest, told, outcomes: outcomes.map(({ n }) => n) });
  return createHash('sha256').update(text).digest('hex');
}

function bundleReport(status: StatusReport, one: BundleStatus, facts: ReportFacts): BundleReport {
  const { bundle, channel, serial } = one;
  const manifest = facts.manifests.get(bundle);
  const active =
    serial === undefined || manifest === undefined
      ? undefined
      : {
          serial,
          manifest,
          sinceMs: one.activatedAtMs ?? status.activatedAtMs ?? status.atMs,
          state: activeState(status, bundle, facts),
          bake: bakeState(one.bake),
        };
  return { bundle, channel, ...given({ active, offered: offeredOf(status, one, facts.detail) }) };
}

function bakeState(bake: BundleStatus['bake']): BakeState {
  if (bake === undefined) return 'none';
  const state = oneOf(['baking', 'settled', 'failed'] as const, bake.state);
  return state === 'settled' && bake.observed === false ? 'unobserved' : state;
}

/**
 * The state of an active bundle, which claims no more than was confirmed. It is confirmed if every group that uses it and can
 * confirm did so, and the workers of the other groups were reached.
 */
function activeState(status: StatusReport, bundle: string, facts: ReportFacts): ActiveState {
  const users = facts.users.filter(({ uses }) => uses.includes(bundle));
  const known = new Map((status.groups ?? []).map((one) => [one.group, one]));
  const canConfirm = users.some(({ group, proof }) => {
    const { workers = 1, min = 1 } = known.get(group) ?? {};
    return proof === 'can confirm' && (workers > 0 || min > 0);
  });
  if (canConfirm) return status.confirmed && status.generation !== undefined ? 'confirmed' : 'unconfirmed';
  const areReached = users.every(({ group }) => {
    const { workers = 0, min = 0 } = known.get(group) ?? {};
    return workers >= min && status.workers.filter((one) => one.group === group).every(isReached);
  });
  return areReached ? 'notified' : 'unconfirmed';
}

/** @returns true also for a departed worker, which stays listed until the member list is reliable */
function isReached({ state, notified, wanted, goneAtMs }: WorkerStatus): boolean {
  return goneAtMs !== undefined || state === 'confirmed' || (state === 'notified' && notified === wanted);
}

function groupReport({ group, workers, confirmed, min }: GroupReport): GroupReport {
  return { group, workers, confirmed, min };
}

interface Why {
  readonly state: OfferedState;
  readonly code: string;
  readonly atMs: number;
  readonly text?: string;
}

function offeredOf(
  status: StatusReport,
  { bundle, serial, server, missed }: BundleStatus,
  detail: ReportDetail,
): BundleReport['offered'] {
  if (server === undefined || server.serial === serial) return undefined;
  const why = whyNot(status, { bundle, serial: server.serial, ...given({ missed }) });
  if (why === undefined) return undefined;
  const { state, code, atMs, text = '' } = why;
  const line = detail === 'codes' || text === '' ? undefined : lineOf(text);
  const output = detail !== 'full' || text === '' ? undefined : outputOf(text);
  return { serial: server.serial, state, code: codeOf(code), atMs, ...given({ line, output }) };
}

/** The failure of the last attempt, and the time since when the release is offered. */
function missedWhy(bundle: string, missed: MissedStatus & Pick<Why, 'code'>): Why {
  const { code, sinceMs } = missed;
  return {
    state: 'failed',
    code,
    atMs: sinceMs,
    text: createMissedReleaseError(bundle, missed).message.replace(/\n.*$/s, ''),
  };
}

/** A decision of an operator or of the host has precedence over the failure of the last cycle. */
function whyNot(
  status: StatusReport,
  { bundle, serial, missed }: Pick<BundleStatus, 'bundle' | 'missed'> & { readonly serial: number },
): Why | undefined {
  const { refusals, holds, pause, waiting = [], problems, last, atMs } = status;
  const isIt = (one: { readonly bundle: string; readonly serial: number }): boolean =>
    one.bundle === bundle && one.serial === serial;
  const refusal = refusals.find(isIt);
  if (refusal !== undefined)
    return {
      state: stateOf(refusal.code, 'refused'),
      code: refusal.code,
      atMs: refusal.atMs,
      text: refusal.reason,
    };
  const hold = holds.find(isIt);
  if (hold !== undefined) return { state: 'deferred', code: 'RELEASE_HELD', atMs: hold.atMs };
  if (pause !== undefined) return { state: 'deferred', code: 'ACTIVATION_PAUSED', atMs: pause.atMs };
  if (waiting.some(isIt)) return { state: 'deferred', code: 'ACTIVATION_PACED', atMs: last?.atMs ?? atMs };
  if (missed?.code !== undefined) return missedWhy(bundle, { ...missed, code: missed.code });
  const own = problems.find(
    ({ facts }) =>
      facts['bundle'] === bundle && (facts['serial'] === undefined || facts['serial'] === serial),
  );
  const met = own ?? (last !== undefined && troubled.has(last.outcome) ? problems[0] : undefined);
  if (met === undefined) return undefined;
  return { state: stateOf(met.code, 'failed'), code: met.code, atMs: last?.atMs ?? atMs, text: met.message };
}

const troubled: ReadonlySet<string> = new Set(['failed', 'rejected', 'rolled-back', 'deferred', 'blocked']);

const stateOfOutcome: Readonly<Record<string, OfferedState>> = {
  rejected: 'refused',
  'rolled-back': 'rolled-back',
  deferred: 'deferred',
  failed: 'failed',
  blocked: 'failed',
};

function stateOf(code: string, otherwise: OfferedState): OfferedState {
  const row = Object.hasOwn(errorCodes, code) ? errorCodes[code as keyof typeof errorCodes] : undefined;
  return (row && stateOfOutcome[outcomeOfKind[row.kind]]) ?? otherwise;
}

function codeOf(code: string): string {
  return Object.hasOwn(errorCodes, code) || states.includes(code) ? code : unnamedFinding;
}

function nameOf(text: string): string {
  return /^[A-Za-z0-9._:+-]{1,255}$/.test(text) ? text : '?';
}

function isRole(text: string): boolean {
  return /^[A-Za-z0-9._-]{1,255}$/.test(text);
}

function oneOf<T extends string>(known: readonly [T, ...T[]], value: string): T {
  return known.find((one) => one === value) ?? known[0];
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern removes them
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;

/** @returns the first line of the output of the check, or the message of Writ before it if there is no output */
function lineOf(text: string): string {
  const [message = '', output] = text.split('\n').filter((line) => line.trim() !== '');
  const first = output ?? message;
  return cut(first.replace(control, ' '), fleetBounds.maxLineLength);
}

function outputOf(text: string): string {
  const bytes = Buffer.from(text).subarray(0, fleetBounds.maxOutputBytes);
  // Remove a character that the limit has cut in two.
  return bytes.toString('utf8').replace(/\ufffd+$/, '');
}

/** Cuts a text, but not within a surrogate pair. */
function cut(text: string, maxLength: number): string {
  return text.slice(0, maxLength).replace(/[\ud800-\udbff]$/, '');
}
