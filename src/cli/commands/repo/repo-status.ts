// `writ repo status`: show versions, keys and days to expiry of a repository on disk, and its releases. The exit code
// is the answer to "does anybody have to act".

import { isWritError, WritError } from '../../../core/errors.js';
import { given } from '../../../core/given.js';
import { timeLeft } from '../../../core/text/iso-time.js';
import { keyId } from '../../../core/tuf/signature-schemes.js';
import { isOnlineRole } from '../../../core/tuf/tuf-metadata.js';
import { listNewReleases, liveReleasesOf } from '../../../publisher/repository/listing.js';
import { layoutOf } from '../../../publisher/repository/repository-layout.js';
import { type RepositoryState, readRepositoryState } from '../../../publisher/repository/repository-state.js';
import { judgePublishedSnapshot, type SnapshotVerdict } from '../../../publisher/repository/seen-files.js';
import { listWaitingRoles, type SignedRole } from '../../../publisher/signing/online-signing.js';
import { chooseSigningTimeMs, measureSignedAheadMs } from '../../../publisher/signing/signing-time.js';
import { keyObstacle } from '../../../publisher/upkeep/resign-obstacle.js';
import { type RoleReport, reportRoles } from '../../../publisher/upkeep/role-report.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { type DocsPlaces, docsPage } from '../../console/docs-address.js';
import { durationFlag } from '../../console/flag-values.js';
import { type FlagValues, preset } from '../../console/flags.js';
import { ownRootFlag, repositoryFlag } from '../../repository/repository-flags.js';
import {
  holdersText,
  isoDay,
  releaseDetails,
  releaseLines,
  shellWord,
  shortDigest,
} from '../../show/show-repository.js';
import { table } from '../../show/show-text.js';

const monthMs = 30 * 86_400_000;
const flags = {
  repository: repositoryFlag,
  keys: ownRootFlag,
  failWithin: preset(
    '--fail-within <duration>',
    "warn about roles that expire within; at most a quarter of a role's life",
    monthMs,
    durationFlag,
    '30d',
  ),
};
type RepoStatusFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<RepoStatusFlags> = {
  examples: ['writ repo status --repository repo', 'writ repo status --repository repo --fail-within 45d -q'],
  exitCodes: [
    '0  every role is fresh',
    '1  a role expires soon, something waits to be signed, or the online keys of --keys cannot re-sign',
    '2  a role has expired, or the repository does not verify; also: usage',
  ],
  quiet: 'nothing',
  flags,
  run: async (_args, flags, { clock, at, surroundings }) => {
    const state = stateOrError(flags, at);
    if (isWritError(state)) return invalidAnswer(state, surroundings);
    const nowMs = clock.nowMs();
    // By the time that hosts go by, which a clock that was ahead may have signed.
    const judgedAtMs = chooseSigningTimeMs(state, nowMs);
    const roles = reportRoles(state, judgedAtMs, flags.failWithin);
    const { keys } = flags;
    const obstacle = keys === undefined ? undefined : keyObstacle(at(keys), state.live.root.signed);
    return answer(state, { roles, obstacle, ...judgePublishedSnapshot(state) }, flags, nowMs);
  },
};

/** That it does not verify is an answer here, and the worst one. */
function stateOrError(
  { repository, keys }: RepoStatusFlags,
  at: CommandContext['at'],
): RepositoryState | WritError {
  try {
    return readRepositoryState(layoutOf(at(repository)), at(keys));
  } catch (error) {
    if (isWritError(error) && error.code === 'REPOSITORY_INVALID') return error;
    throw error;
  }
}

function invalidAnswer({ code, message, hint, facts }: WritError, places: DocsPlaces): Answer {
  return {
    outcome: 'critical',
    exitCode: 2,
    details: { code, message, hint, ...docsPage(code, places), facts },
    lines: [`CRITICAL ${message} [${code}]`, `  ${hint}`],
  };
}

interface Found extends SnapshotVerdict {
  readonly roles: readonly RoleReport[];
  /** Why the keys that were named cannot re-sign. */
  readonly obstacle: WritError | undefined;
}

const verdicts = {
  fresh: 'ok',
  soon: 'warn',
  unsigned: 'warn',
  waiting: 'warn',
  expired: 'FAIL',
  refused: 'FAIL',
} as const;

const verdictOf = ({ condition }: Pick<RoleReport, 'condition'>) => verdicts[condition];

function answer(
  state: RepositoryState,
  { roles, obstacle, rollback, newer: newerSnapshot }: Found,
  flags: RepoStatusFlags,
  nowMs: number,
): Answer {
  const worst =
    roles.find((row) => verdictOf(row) === 'FAIL') ?? roles.find((row) => verdictOf(row) === 'warn');
  const waitingRoles = listWaitingRoles(state);
  const waiting = waitingRoles.length > 0;
  const newer = waitingRoles.find((one) => one.role === worst?.role && isUnexpired(state, one, nowMs));
  const ahead = measureSignedAheadMs(state, nowMs);
  const isWarning = worst !== undefined || waiting || ahead !== undefined || obstacle !== undefined;
  const isRefused = rollback !== undefined || (worst !== undefined && verdictOf(worst) === 'FAIL');
  const exitCode = isRefused ? 2 : isWarning ? 1 : 0;
  const outcome = (['ok', 'warning', 'critical'] as const)[exitCode] ?? 'critical';
  return {
    outcome,
    exitCode,
    details: {
      repository: flags.repository,
      waiting,
      waitingRoles,
      newReleases: releaseDetails(listNewReleases(state)),
      ignored: state.ignored,
      ...given({
        signedAheadMs: ahead,
        cannotResign: obstacle && { code: obstacle.code, message: obstacle.message },
        newerSnapshot,
        rollback: rollback && { code: rollback.code, message: rollback.message, facts: rollback.facts },
      }),
      ...details(state, roles, nowMs),
    },
    lines: [
      verdictLine(outcome, { worst, newer, waitingRoles, ahead, obstacle, rollback }, nowMs),
      ...(rollback === undefined ? [] : [`  ${rollback.hint}`]),
      ...(newerSnapshot === undefined ? [] : [`  ${newerSnapshot}`]),
      ...obstacleLines(obstacle, worst),
      ...aheadLines(ahead, nowMs),
      ...table(
        ['role', 'version', 'signed', 'need', 'expires', 'left', 'who signs', ''],
        roles.map((row) => roleRow(row, nowMs)),
      ),
      ...state.ignored.map((name) => `  ${name} is newer and does not verify: it cannot be published`),
      ...publishedLines(state),
      ...releaseLines('waits', listNewReleases(state)),
    ],
    next: nextLine({ worst, newer, waitingRoles }, flags),
  };
}

/** An expired file that waits has to be signed again. */
function isUnexpired({ targets, delegated }: RepositoryState, { role }: SignedRole, nowMs: number): boolean {
  const file = role === 'targets' ? targets : delegated.get(role);
  return file !== undefined && file.expiresAtMs > nowMs;
}

const maxSignersShown = 4;

function roleRow(row: RoleReport, nowMs: number): string[] {
  const { role, by, version, signed, threshold, expiresMs, signers } = row;
  const more = signers.length > maxSignersShown ? ` and ${signers.length - maxSignersShown} more` : '';
  return [
    by === undefined ? role : `  ${role}`,
    version === 0 ? '-' : String(version),
    String(signed),
    String(threshold),
    expiresMs === undefined ? '-' : isoDay(expiresMs),
    expiresMs === undefined ? '-' : timeLeft(expiresMs - nowMs),
    `${signers.slice(0, maxSignersShown).join(', ')}${more}`,
    verdictOf(row),
  ];
}

/** The time that was signed, and how that ends. */
function aheadLines(ahead: number | undefined, nowMs: number): string[] {
  if (ahead === undefined) return [];
  const { hint } = new WritError('SIGNED_AHEAD', '');
  return [`  hosts use ${isoDay(nowMs + ahead)} as the present, and see no expiry before it. ${hint}`];
}

/** Under a verdict that is about something else. */
function obstacleLines(obstacle: WritError | undefined, worst: RoleReport | undefined): string[] {
  if (obstacle === undefined) return [];
  const lines = worst === undefined ? [] : [`  a server cannot re-sign with these keys: ${obstacle.message}`];
  return [...lines, `  ${obstacle.hint}`];
}

interface Verdict extends Pick<Found, 'obstacle' | 'rollback'> {
  readonly worst: RoleReport | undefined;
  /** A newer version of that role, which only `writ refresh` has to publish. */
  readonly newer: SignedRole | undefined;
  readonly waitingRoles: readonly SignedRole[];
  readonly ahead: number | undefined;
}

function verdictLine(outcome: string, verdict: Verdict, nowMs: number): string {
  const { worst, newer, waitingRoles, ahead, obstacle, rollback } = verdict;
  const word = outcome.toUpperCase();
  if (rollback !== undefined) return `${word} ${rollback.message} [${rollback.code}]`;
  if (worst === undefined && obstacle !== undefined)
    return `${word} a server cannot re-sign with these keys: ${obstacle.message} [${obstacle.code}]`;
  if (worst === undefined && ahead !== undefined)
    return `${word} the repository was signed by a clock that was ${timeLeft(ahead)} ahead [SIGNED_AHEAD]`;
  if (worst === undefined) {
    if (waitingRoles.length === 0) return `${word} every role is fresh`;
    const verb = waitingRoles.length === 1 ? 'waits' : 'wait';
    return `${word} ${rolesText(waitingRoles)} ${verb} for the online keys`;
  }
  const { role, by, condition, expiresMs = 0 } = worst;
  if (newer !== undefined) return `${word} ${role} v${newer.version} is signed and waits for the online keys`;
  const lost = by === undefined ? 'hosts accept nothing new' : 'hosts accept no new bundle of it';
  switch (condition) {
    case 'expired':
      return `${word} ${role} has expired: ${lost}`;
    case 'refused':
      return `${word} ${role} is not signed by the keys that ${by ?? 'the root'} lists now: hosts refuse it`;
    case 'unsigned':
      return `${word} ${role} is not signed yet: its bundles cannot be published`;
    default:
      return `${word} ${role} expires in ${timeLeft(expiresMs - nowMs)}: then ${lost}`;
  }
}

const maxRolesShown = 4;

/** @returns as `targets v3, dns-team v2` */
function rolesText(roles: readonly SignedRole[]): string {
  const shown = roles.slice(0, maxRolesShown).map(({ role, version }) => `${role} v${version}`);
  const more = roles.length - shown.length;
  return more === 0 ? shown.join(', ') : `${shown.join(', ')} and ${more} more`;
}

function nextLine(
  { worst, newer, waitingRoles }: Pick<Verdict, 'worst' | 'newer' | 'waitingRoles'>,
  { repository }: RepoStatusFlags,
): string | undefined {
  const place = `--repository ${shellWord(repository)}`;
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

function publishedLines(state: RepositoryState): string[] {
  const releases = liveReleasesOf(state);
  if (releases.length === 0) return ['  no bundle is published yet'];
  const rows = releases.map(({ role, release }) => {
    const { bundle, channel, serial, revision, createdAtMs, manifest } = release;
    return [
      bundle,
      channel,
      String(serial),
      revision,
      isoDay(createdAtMs),
      shortDigest(manifest.digest),
      role,
    ];
  });
  return table(['bundle', 'channel', 'serial', 'revision', 'made', 'manifest', 'signed by'], rows);
}

function details(
  state: RepositoryState,
  roles: readonly RoleReport[],
  nowMs: number,
): Record<string, unknown> {
  const { root } = state.live;
  return {
    roles: roles.map(({ expiresMs, ...row }) => {
      const expires = expiresMs === undefined ? null : new Date(expiresMs).toISOString();
      const leftMs = expiresMs === undefined ? null : expiresMs - nowMs;
      return { ...row, expires, leftMs, verdict: verdictOf(row) };
    }),
    keys: Object.values(root.signed.keys).map((key) => ({ keyId: keyId(key), ...key })),
    releases: liveReleasesOf(state).map(({ path, role, release }) => {
      const { createdAtMs, manifest, ...rest } = release;
      return {
        path,
        role,
        ...rest,
        createdAt: new Date(createdAtMs).toISOString(),
        manifestDigest: manifest.digest,
      };
    }),
  };
}
