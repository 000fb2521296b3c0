// `writ repo status`: show versions, keys and days to expiry of a repository on disk, and its releases. The exit code
// is 0 when the publisher has nothing to do.

import { isWritError, WritError } from '../../../core/errors.js';
import { given } from '../../../core/given.js';
import { timeLeft } from '../../../core/text/iso-time.js';
import { keyId } from '../../../core/tuf/signature-schemes.js';
import { ignoredDetails } from '../../../publisher/repository/ignored-file.js';
import { listNewReleases, liveReleasesOf } from '../../../publisher/repository/listing.js';
import { layoutOf } from '../../../publisher/repository/repository-layout.js';
import { type RepositoryState, readRepositoryState } from '../../../publisher/repository/repository-state.js';
import { judgePublishedSnapshot, type SnapshotVerdict } from '../../../publisher/repository/seen-files.js';
import { omitUnpublishableFiles } from '../../../publisher/signing/omit-unacceptable-files.js';
import { listWaitingRoles } from '../../../publisher/signing/online-signing.js';
import { chooseSigningTimeMs, measureSignedAheadMs } from '../../../publisher/signing/signing-time.js';
import { findKeyObstacle } from '../../../publisher/upkeep/resign-obstacle.js';
import { type RoleReport, reportRoles } from '../../../publisher/upkeep/role-report.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { type DocsPlaces, docsPage } from '../../console/docs-address.js';
import { durationFlag } from '../../console/flag-values.js';
import { type FlagValues, preset } from '../../console/flags.js';
import { ownRootFlag, repositoryFlag } from '../../repository/repository-flags.js';
import {
  damagedLines,
  ignoredLines,
  maxSignersShown,
  nextLine,
  verdictLine,
  verdictOf,
} from '../../repository/status-verdict.js';
import { isoDay, releaseDetails, releaseLines, shellQuote, shortDigest } from '../../show/show-repository.js';
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
    '1  a role expires soon, a file waits or cannot be published, or the online keys of --keys cannot re-sign',
    '2  a role has expired, or the repository does not verify; also: usage',
  ],
  quiet: 'nothing',
  flags,
  run: async (_args, flags, { clock, at, surroundings }) => {
    const state = stateOrError(flags, at);
    if (isWritError(state)) return invalidAnswer(state, surroundings);
    const nowMs = clock.nowMs();
    // Use the time that hosts use: a publisher with a fast clock may have signed a later one.
    const judgedAtMs = chooseSigningTimeMs(state, nowMs);
    const shown = await omitUnpublishableFiles(state, clock, 'length');
    const roles = reportRoles(shown, judgedAtMs, flags.failWithin);
    const { keys } = flags;
    const obstacle = keys === undefined ? undefined : findKeyObstacle(at(keys), state.live.root.signed);
    return answer(shown, { roles, obstacle, ...judgePublishedSnapshot(state) }, flags, nowMs);
  },
};

/** Returns a failed verification as a value, because it is the worst status and not an error of this command. */
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
  /** Why the keys of --keys cannot re-sign; undefined when they can, or without --keys. */
  readonly obstacle: WritError | undefined;
}

function answer(
  state: RepositoryState,
  { roles, obstacle, rollback, newer: newerSnapshot }: Found,
  flags: RepoStatusFlags,
  nowMs: number,
): Answer {
  const worst =
    roles.find((row) => verdictOf(row) === 'FAIL') ?? roles.find((row) => verdictOf(row) === 'warn');
  const waitingRoles = listWaitingRoles(state);
  const newer = waitingRoles.find((one) => one.role === worst?.role);
  const ahead = measureSignedAheadMs(state, nowMs);
  const { ignored } = state;
  const verdict = { worst, newer, waitingRoles, ignored, ahead, obstacle, rollback };
  const warnings = [...waitingRoles, ...ignored, worst, ahead, obstacle];
  const isWarning = warnings.some((one) => one !== undefined);
  const isRefused = rollback !== undefined || (worst !== undefined && verdictOf(worst) === 'FAIL');
  const exitCode = isRefused ? 2 : isWarning ? 1 : 0;
  const outcome = (['ok', 'warning', 'critical'] as const)[exitCode] ?? 'critical';
  return {
    outcome,
    exitCode,
    details: {
      repository: flags.repository,
      waiting: waitingRoles.length > 0,
      waitingRoles,
      newReleases: releaseDetails(listNewReleases(state)),
      ...ignoredDetails(ignored),
      ...given({
        signedAheadMs: ahead,
        cannotResign: obstacle && { code: obstacle.code, message: obstacle.message },
        newerSnapshot,
        rollback: rollback && { code: rollback.code, message: rollback.message, facts: rollback.facts },
      }),
      ...details(state, roles, nowMs),
    },
    lines: [
      verdictLine(outcome, verdict, nowMs),
      ...(rollback === undefined ? [] : [`  ${rollback.hint}`]),
      ...(newerSnapshot === undefined ? [] : [`  ${newerSnapshot}`]),
      ...damagedLines(worst),
      ...ignoredLines(verdict),
      ...obstacleLines(obstacle, worst),
      ...aheadLines(ahead, nowMs),
      ...table(
        ['role', 'version', 'signed', 'need', 'expires', 'left', 'who signs', ''],
        roles.map((row) => roleRow(row, nowMs)),
      ),
      ...publishedLines(state),
      ...releaseLines('waits', listNewReleases(state)),
    ],
    next: nextLine(verdict, `--repository ${shellQuote(flags.repository)}`),
  };
}

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

/** The signed time that hosts use as the present, when it is ahead, and how to end that. */
function aheadLines(ahead: number | undefined, nowMs: number): string[] {
  if (ahead === undefined) return [];
  const { hint } = new WritError('SIGNED_AHEAD', '');
  return [`  hosts use ${isoDay(nowMs + ahead)} as the present, and see no expiry before it. ${hint}`];
}

/** The obstacle as extra lines, when the first line is about another problem. */
function obstacleLines(obstacle: WritError | undefined, worst: RoleReport | undefined): string[] {
  if (obstacle === undefined) return [];
  const lines = worst === undefined ? [] : [`  a server cannot re-sign with these keys: ${obstacle.message}`];
  return [...lines, `  ${obstacle.hint}`];
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
