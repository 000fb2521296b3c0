// The verdict of `writ repo status` as text: the worst condition of the repository, and the next command. Pure.
import type { WritError } from '../../core/errors.js';
import { timeLeft } from '../../core/text/iso-time.js';
import { isOnlineRole } from '../../core/tuf/tuf-metadata.js';
import {
  damagedHint,
  type IgnoredFile,
  ignoredHint,
  ignoredText,
} from '../../publisher/repository/ignored-file.js';
import type { SnapshotVerdict } from '../../publisher/repository/seen-files.js';
import type { SignedRole } from '../../publisher/signing/online-signing.js';
import type { RoleReport } from '../../publisher/upkeep/role-report.js';
import { holdersText } from '../show/show-repository.js';

const verdicts = {
  fresh: 'ok',
  soon: 'warn',
  unsigned: 'warn',
  waiting: 'warn',
  expired: 'FAIL',
  refused: 'FAIL',
  damaged: 'FAIL',
} as const;

export const verdictOf = ({ condition }: Pick<RoleReport, 'condition'>) => verdicts[condition];

export interface StatusVerdict extends Pick<SnapshotVerdict, 'rollback'> {
  /** Why the given keys cannot re-sign. */
  readonly obstacle: WritError | undefined;
  readonly worst: RoleReport | undefined;
  /** A newer version of that role, which `writ refresh` can publish. */
  readonly newer: SignedRole | undefined;
  readonly waitingRoles: readonly SignedRole[];
  /** Newer files that hosts would refuse. */
  readonly ignored: readonly IgnoredFile[];
  readonly ahead: number | undefined;
}

/**
 * @param outcome in lower case, as in `--json`
 * @returns the worst condition of the repository with its error code; `every role is fresh` where there is none
 */
export function verdictLine(outcome: string, verdict: StatusVerdict, nowMs: number): string {
  const { worst, newer, waitingRoles, ahead, obstacle, rollback } = verdict;
  const [ignored] = verdict.ignored;
  const label = outcome.toUpperCase();
  if (rollback !== undefined) return `${label} ${rollback.message} [${rollback.code}]`;
  if (worst === undefined && obstacle !== undefined)
    return `${label} a server cannot re-sign with these keys: ${obstacle.message} [${obstacle.code}]`;
  if (worst === undefined && ahead !== undefined)
    return `${label} the repository was signed by a clock that was ${timeLeft(ahead)} ahead [SIGNED_AHEAD]`;
  if (ignored !== undefined && namesIgnored(verdict)) return `${label} ${ignoredText(ignored)}`;
  if (worst === undefined) {
    if (waitingRoles.length === 0) return `${label} every role is fresh`;
    const verb = waitingRoles.length === 1 ? 'waits' : 'wait';
    return `${label} ${rolesText(waitingRoles)} ${verb} for the online keys`;
  }
  const waits = newer && `${newer.role} v${newer.version} is signed and waits for the online keys`;
  return `${label} ${waits ?? roleText(worst, nowMs)}`;
}

/** @returns the condition of a role that is not fresh, and its effect */
function roleText({ role, by, condition, problem, expiresMs = 0 }: RoleReport, nowMs: number): string {
  const lost = by === undefined ? 'hosts accept nothing new' : 'hosts accept no new bundle of it';
  switch (condition) {
    case 'expired':
      return `${role} has expired: ${lost}`;
    case 'refused':
      return `${role} is not signed by the keys that ${by ?? 'the root'} lists now: hosts refuse it`;
    case 'damaged':
      return `${problem?.message}: ${lost} (${role}) [${problem?.code}]`;
    case 'unsigned':
      return `${role} is not signed yet: its bundles cannot be published`;
    default:
      return `${role} expires in ${timeLeft(expiresMs - nowMs)}: then ${lost}`;
  }
}

/** True where the verdict is about a file that cannot be published: hosts accept all published files then. */
function namesIgnored({ worst, obstacle, ahead, rollback, ignored }: StatusVerdict): boolean {
  if (rollback !== undefined || ignored.length === 0) return false;
  return worst === undefined ? obstacle === undefined && ahead === undefined : verdictOf(worst) !== 'FAIL';
}

/** @returns the remedy for each file that cannot be published, with its cause where the verdict does not show it */
export function ignoredLines(verdict: StatusVerdict): string[] {
  return verdict.ignored.map((file, index) => {
    const hint = ignoredHint(file);
    return index === 0 && namesIgnored(verdict) ? `  ${hint}` : `  ${ignoredText(file)}. ${hint}`;
  });
}

/** @returns the remedy where the listed file of a team is missing or damaged */
export function damagedLines(worst: RoleReport | undefined): string[] {
  if (worst?.condition !== 'damaged') return [];
  return [`  ${damagedHint(`${worst.version}.${worst.role}.json`)}`];
}

const maxRolesShown = 4;

/** @returns as `targets v3, dns-team v2` */
function rolesText(roles: readonly SignedRole[]): string {
  const shown = roles.slice(0, maxRolesShown).map(({ role, version }) => `${role} v${version}`);
  const more = roles.length - shown.length;
  return more === 0 ? shown.join(', ') : `${shown.join(', ')} and ${more} more`;
}

export const maxSignersShown = 4;

/**
 * @param place the flag of the repository
 * @returns the command below the verdict; undefined without one
 */
export function nextLine(verdict: StatusVerdict, place: string): string | undefined {
  const { newer, waitingRoles } = verdict;
  const isSignature = !namesIgnored(verdict) && verdict.worst?.condition !== 'damaged';
  const worst = isSignature ? verdict.worst : undefined;
  if (worst === undefined && waitingRoles.length === 0) return undefined;
  const { role = 'timestamp', signers = [], threshold = 1 } = worst ?? {};
  if (role === 'root') {
    const file = `root-${(worst?.version ?? 0) + 1}.proposal`;
    return `writ root rotate ${place} -o ${file}   (then each holder signs: writ sign ${file})`;
  }
  if (isOnlineRole(role) || newer !== undefined) {
    return `writ refresh ${place} --keys DIR   (where the online keys are)`;
  }
  return `writ sign --role ${role} ${place} --keys DIR   (${holdersText(threshold, signers.slice(0, maxSignersShown))})`;
}
