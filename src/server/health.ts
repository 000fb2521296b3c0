// Judges the repository for /healthz: whether it is readable, and whether hosts still accept it. Pure. `critical` (503) is
// only for metadata that hosts would refuse now. A task for an operator is a warning.
import type { ErrorCode } from '../core/errors.js';
import type { ServerStateCode } from '../core/status/host-health.js';
import { isOnlineRole, type TopLevelRole } from '../core/tuf/tuf-metadata.js';
import type { RoleState, ServedState } from './resign/repository-view.js';
import { missingFilesText, type ResignStatus, setAsideText } from './resign/resigner.js';

interface HealthReason {
  readonly level: 'warning' | 'critical';
  readonly code: ErrorCode | ServerStateCode;
  readonly message: string;
}

export interface Health {
  readonly status: 'ok' | 'warning' | 'critical';
  readonly reasons: readonly HealthReason[];
  readonly roles: Readonly<Partial<Record<TopLevelRole, ReturnType<typeof roleHealth>>>>;
  /** True when the server re-signs snapshot and timestamp itself. */
  readonly onlineKeys: boolean;
  readonly lastResign?: string;
}

/** Operators sign these roles, and need days, not hours. */
const offlineWarningMs = 14 * 86_400_000;

interface HealthInput {
  readonly state: ServedState;
  readonly nowMs: number;
  /** Absent without online keys. */
  readonly resign?: ResignStatus | undefined;
}

/** @returns the worst level of all reasons; `ok` without one. `lastResign` is left out before the first success. */
export function judgeHealth({ state, nowMs, resign }: HealthInput): Health {
  const roles = Object.entries(state.roles);
  const reasons: HealthReason[] = [
    ...state.problems.map(({ code, message }) => ({ level: 'critical', code, message }) as const),
    ...aheadReason(state, nowMs),
    ...roles.flatMap(([role, one]) => expiryReason(role, one, { nowMs: judgedAtMs(state, nowMs), resign })),
    ...missingReason(state),
    ...resignReasons(state, resign),
  ];
  const lastMs = resign?.lastSuccessMs;
  const worst = reasons.some(({ level }) => level === 'critical') ? 'critical' : 'warning';
  return {
    status: reasons.length === 0 ? 'ok' : worst,
    reasons,
    roles: Object.fromEntries(roles.map(([role, one]) => [role, roleHealth(one, nowMs)])),
    onlineKeys: resign !== undefined,
    ...(lastMs === undefined ? {} : { lastResign: new Date(lastMs).toISOString() }),
  };
}

/** Hosts use the signed time where it is later than that of their clock. */
function judgedAtMs({ roles }: ServedState, nowMs: number): number {
  return Math.max(nowMs, roles.timestamp?.recordedAtMs ?? 0);
}

function missingReason({ missing }: ServedState): HealthReason[] {
  if (missing.length === 0) return [];
  return [{ level: 'warning', code: 'METADATA_MISSING', message: missingFilesText(missing) }];
}

/** Hosts tolerate this difference of clocks without a report. */
const toleratedSkewMs = 60_000;

function aheadReason(state: ServedState, nowMs: number): HealthReason[] {
  const signedAtMs = judgedAtMs(state, nowMs);
  if (signedAtMs - nowMs <= toleratedSkewMs) return [];
  const message = `signed while a clock was ahead, at ${new Date(signedAtMs).toISOString()}: hosts see no expiry before; replace the timestamp key`;
  return [{ level: 'warning', code: 'SIGNED_AHEAD', message }];
}

function expiryReason(
  role: string,
  { expiresMs, signedAtMs }: RoleState,
  { nowMs, resign }: Omit<HealthInput, 'state'>,
): HealthReason[] {
  const online = isOnlineRole(role);
  const leftMs = expiresMs - nowMs;
  if (leftMs <= 0) {
    const message = `${role} expired ${new Date(expiresMs).toISOString()}`;
    return [{ level: online ? 'critical' : 'warning', code: 'METADATA_EXPIRED', message }];
  }
  const warnBelowMs = online ? (expiresMs - signedAtMs) / 4 : offlineWarningMs;
  if (leftMs >= warnBelowMs) return [];
  const remedy =
    online && resign === undefined ? `, and this server has no online keys: ${refreshElsewhere}` : '';
  const message = `${role} expires ${new Date(expiresMs).toISOString()}${remedy}`;
  return [{ level: 'warning', code: 'EXPIRES_SOON', message }];
}

/** The hint for a server without keys, such as a mirror, about its timestamp. */
const refreshElsewhere = 'writ refresh where they are';

function resignReasons(state: ServedState, resign: ResignStatus | undefined): HealthReason[] {
  if (resign === undefined) {
    if (state.pending.length === 0) return [];
    const message = `${state.pending.join(', ')} published but not signed into the snapshot: writ refresh`;
    return [{ level: 'warning', code: 'PUBLISH_PENDING', message }];
  }
  const { setAside } = resign;
  const waiting: HealthReason[] =
    setAside === undefined
      ? []
      : [{ level: 'warning', code: 'PUBLISH_PENDING', message: setAsideText(setAside.files) }];
  return [...waiting, ...failureReasons(resign, describeDeadline(state))];
}

function failureReasons(resign: ResignStatus, until: string): HealthReason[] {
  if (resign.failure !== undefined) {
    const { code, message, count } = resign.failure;
    return [{ level: 'warning', code, message: `re-signing failed ${count} times: ${message}${until}` }];
  }
  if (resign.obstacle === undefined) return [];
  const { code, message } = resign.obstacle;
  return [{ level: 'warning', code, message: `re-signing would fail: ${message}${until}` }];
}

/** @returns a text with the time until which an operator must act; empty where it is unknown */
function describeDeadline({ roles: { timestamp, snapshot } }: ServedState): string {
  const ends = [timestamp, snapshot].flatMap((one) => (one === undefined ? [] : [one.expiresMs]));
  if (ends.length === 0) return '';
  return `; hosts take nothing new after ${new Date(Math.min(...ends)).toISOString()}`;
}

function roleHealth({ version, expiresMs }: RoleState, nowMs: number) {
  return {
    version,
    expires: new Date(expiresMs).toISOString(),
    secondsLeft: Math.floor((expiresMs - nowMs) / 1000),
  };
}
