// `writ repo status`: versions, keys and days to expiry of a repository on disk, and its releases. The exit code
// is the answer to "does anybody have to act".
import { isWritError, type WritError } from '../../core/errors.js';
import { keyId } from '../../core/signature-schemes.js';
import { type TopLevelRole, topLevelRoles } from '../../core/tuf-metadata.js';
import { livesOf, releasesOf } from '../../publisher/metadata-content.js';
import { layoutOf } from '../../publisher/repository-layout.js';
import { type RepositoryState, readRepositoryState } from '../../publisher/repository-state.js';
import type { Answer, CommandDefinition } from '../command.js';
import { durationFlag } from '../flag-values.js';
import { columns, isoDay, shellWord, shortDigest, timeLeft } from '../show-repository.js';

interface RepoStatusFlags {
  readonly repository: string;
  readonly keys?: string;
  readonly failWithin: number;
}

export const command: CommandDefinition<RepoStatusFlags> = {
  examples: ['writ repo status --repository repo', 'writ repo status --repository repo --fail-within 45d -q'],
  exitCodes: [
    '0  every role is fresh',
    '1  a role expires soon, or something waits to be signed',
    '2  a role has expired, or the repository does not verify; also: usage',
  ],
  onSignal: 'end',
  configure: (status) => {
    status
      .requiredOption('--repository <dir>', 'the repository that `writ init` made')
      .option('--keys <dir>', "directory with the publisher's copy of the root, to verify from")
      .option(
        '--fail-within <duration>',
        'warn about roles that expire within',
        durationFlag,
        30 * 86_400_000,
      );
  },
  run: async (_args, flags, { clock }) => {
    const state = stateOrError(flags);
    if (isWritError(state)) return invalidAnswer(state);
    return answer(state, describeRoles(state, clock.nowMs(), flags.failWithin), flags);
  },
};

/** That it does not verify is an answer here, and the worst one. */
function stateOrError({ repository, keys }: RepoStatusFlags): RepositoryState | WritError {
  try {
    return readRepositoryState(layoutOf(repository), keys);
  } catch (error) {
    if (isWritError(error) && error.code === 'REPOSITORY_INVALID') return error;
    throw error;
  }
}

function invalidAnswer({ code, message, hint, facts }: WritError): Answer {
  return {
    type: 'repo-status.result',
    outcome: 'critical',
    exitCode: 2,
    details: { code, message, hint, facts },
    lines: [`CRITICAL ${message} [${code}]`, `  ${hint}`],
  };
}

interface RoleRow {
  readonly role: TopLevelRole;
  readonly version: number;
  readonly signed: number;
  readonly threshold: number;
  readonly keyIds: readonly string[];
  readonly expiresMs: number;
  readonly leftMs: number;
  readonly verdict: 'ok' | 'warn' | 'FAIL';
}

function describeRoles({ live, outdated }: RepositoryState, nowMs: number, failWithinMs: number): RoleRow[] {
  const lives = livesOf(live.root.signed);
  return topLevelRoles.map((role) => {
    const { signed, signatures, expiresAtMs } = live[role];
    const { keyids, threshold } = live.root.signed.roles[role];
    const leftMs = expiresAtMs - nowMs;
    // A role that lives for a week would warn for ever of ending within a month.
    const soon = leftMs < Math.min(failWithinMs, lives[role] / 4);
    const vouched = role === 'root' || !outdated.includes(role);
    return {
      role,
      version: signed.version,
      signed: signatures.filter(({ keyid }) => keyids.includes(keyid)).length,
      threshold,
      keyIds: keyids,
      expiresMs: expiresAtMs,
      leftMs,
      verdict: leftMs <= 0 || !vouched ? 'FAIL' : soon ? 'warn' : 'ok',
    };
  });
}

function answer(state: RepositoryState, roles: readonly RoleRow[], flags: RepoStatusFlags): Answer {
  const worst = roles.find((row) => row.verdict === 'FAIL') ?? roles.find((row) => row.verdict === 'warn');
  const waiting = state.targets !== state.live.targets;
  const exitCode = worst?.verdict === 'FAIL' ? 2 : worst !== undefined || waiting ? 1 : 0;
  const outcome = (['ok', 'warning', 'critical'] as const)[exitCode] ?? 'critical';
  const next = nextLine(worst?.role ?? (waiting ? 'timestamp' : undefined), flags);
  return {
    type: 'repo-status.result',
    outcome,
    exitCode,
    details: { repository: flags.repository, waiting, ignored: state.ignored, ...details(state, roles) },
    lines: [
      verdictLine(outcome, worst, waiting),
      ...columns([
        ['role', 'version', 'signed', 'need', 'expires', 'left', ''],
        ...roles.map(({ role, version, signed, threshold, expiresMs, leftMs, verdict }) =>
          [role, version, signed, threshold, isoDay(expiresMs), timeLeft(leftMs), verdict].map(String),
        ),
      ]),
      ...releaseLines(state),
    ],
    ...(next === undefined ? {} : { next }),
  };
}

function verdictLine(outcome: string, worst: RoleRow | undefined, waiting: boolean): string {
  const word = outcome.toUpperCase();
  if (worst?.verdict === 'FAIL' && worst.leftMs > 0) {
    return `${word} ${worst.role} is signed by keys that the root no longer lists: hosts refuse it`;
  }
  if (worst?.verdict === 'FAIL') return `${word} ${worst.role} has expired: hosts take nothing new`;
  if (worst !== undefined) return `${word} ${worst.role} expires in ${timeLeft(worst.leftMs)}`;
  return waiting ? `${word} newer targets wait for the online keys` : `${word} every role is fresh`;
}

function nextLine(role: TopLevelRole | undefined, { repository }: RepoStatusFlags): string | undefined {
  if (role !== 'snapshot' && role !== 'timestamp') return undefined;
  return `writ refresh --repository ${shellWord(repository)} --keys DIR   (where the online keys are)`;
}

function releaseLines({ live }: RepositoryState): string[] {
  const releases = releasesOf(live.targets.signed);
  if (releases.length === 0) return ['  no bundle is published yet'];
  const rows = releases.map(({ release }) => {
    const { bundle, channel, serial, revision, createdAtMs, manifest } = release;
    return [bundle, channel, String(serial), revision, isoDay(createdAtMs), shortDigest(manifest.digest)];
  });
  return columns([['bundle', 'channel', 'serial', 'revision', 'made', 'manifest'], ...rows]);
}

function details({ live }: RepositoryState, roles: readonly RoleRow[]): Record<string, unknown> {
  return {
    roles: roles.map(({ expiresMs, leftMs, ...row }) => {
      return { ...row, expires: new Date(expiresMs).toISOString(), leftMs };
    }),
    keys: Object.values(live.root.signed.keys).map((key) => ({ keyId: keyId(key), ...key })),
    releases: releasesOf(live.targets.signed).map(({ path, release }) => {
      const { createdAtMs, manifest, ...rest } = release;
      return {
        path,
        ...rest,
        createdAt: new Date(createdAtMs).toISOString(),
        manifestDigest: manifest.digest,
      };
    }),
  };
}
