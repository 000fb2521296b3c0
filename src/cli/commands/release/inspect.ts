// `writ inspect`: lists the contents of an archive or a repository, and what they prove. An archive alone does not prove
// its author. A repository is verified like on a host, from a given root or from its own root on first use.

import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { isSystemError, WritError } from '../../../core/errors.js';
import { defaultArchiveLimits, defaultMetadataLimits } from '../../../core/limits.js';
import { digestFromHex } from '../../../core/names.js';
import { parseReleaseInfo, type ReleaseInfo } from '../../../core/release/release.js';
import { sizeText } from '../../../core/size-text.js';
import { timeLeft } from '../../../core/text/iso-time.js';
import { topLevelRoles } from '../../../core/tuf/tuf-metadata.js';
import { diskErrorText } from '../../../platform/disk/durable-fs.js';
import { readSmallFile } from '../../../platform/read-file.js';
import { type ArchiveReport, inspectArchive } from '../../../publisher/archive/archive-reader.js';
import { type DeltaReport, inspectDelta } from '../../../publisher/upkeep/inspect-delta.js';
import { openRepositoryClient } from '../../../trust/repository-client.js';
import { openRepositorySource } from '../../../trust/sources/repository-source.js';
import type { RepositorySource } from '../../../trust/sources/source.js';
import { memoryTrustStore } from '../../../trust/store/trust-store.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { type FlagValues, optional } from '../../console/flags.js';
import { deltaDetails, fingerprint, isoDay, shortDigest } from '../../show/show-repository.js';
import { counted, table } from '../../show/show-text.js';

const flags = { root: optional('--root <file>', 'root to verify a repository from, as hosts have it') };
type InspectFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<InspectFlags> = {
  examples: [
    'writ inspect repo/targets/dns-edge/77b0e1.stable.tar.br',
    'writ inspect repo/targets/dns-edge/0a41d7.stable.delta',
    'writ inspect https://policy.example.net/ --root /etc/writ/root.json',
    'writ inspect repo',
  ],
  exitCodes: [
    '0  intact',
    '1  the repository does not verify, or cannot be reached; the delta is not intact',
    '2  usage',
    '3  the archive is not intact',
  ],
  args: [
    ['<what>', 'archive or delta file, repository directory, or http, https or file URL of a repository'],
  ],
  flags,
  run: async ([what = ''], flags, context) => {
    const url = repositoryUrl(what, context);
    if (url !== undefined) return repositoryAnswer(await inspectRepository(url, flags, context));
    if (what.endsWith('.delta')) {
      return deltaAnswer(what, await inspectDelta(context.at(what), defaultArchiveLimits));
    }
    return archiveAnswer(what, await inspectArchive(context.at(what), defaultArchiveLimits));
  },
};

/** The path does not exist, is below a file, has a loop of links, or has a name that is too long for a file. */
const wrongPaths = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'];

function repositoryUrl(what: string, { at }: CommandContext): string | undefined {
  if (/^(https?|file):\/\//.test(what)) return what;
  const path = at(what);
  try {
    return statSync(path).isDirectory() ? pathToFileURL(path).href : undefined;
  } catch (error) {
    if (!wrongPaths.some((code) => isSystemError(error, code))) throw error;
    throw new WritError('USAGE', diskErrorText(error as NodeJS.ErrnoException, path), {
      hint: 'Give an archive, a delta, a repository directory or the URL of a repository.',
      facts: { path },
    });
  }
}

const maxFilesShown = 40;

function archiveAnswer(path: string, report: ArchiveReport): Answer {
  const { archiveBytes, archiveDigest, manifest, manifestDigest } = report;
  const unpackedBytes = manifest.files.reduce((total, file) => total + file.sizeBytes, 0);
  const rows = manifest.files.slice(0, maxFilesShown).map((file) => {
    const mode = file.executable ? '0755' : '0644';
    return [mode, sizeText(file.sizeBytes), shortDigest(file.digest), file.path];
  });
  const more = manifest.files.length - rows.length;
  return {
    outcome: 'intact',
    details: {
      archive: { path, bytes: archiveBytes, digest: archiveDigest },
      manifest: { digest: manifestDigest, bytes: report.manifestBytes },
      files: manifest.files,
    },
    lines: [
      `INTACT ${path}: every file matches the manifest`,
      `  archive   ${archiveDigest}  ${sizeText(archiveBytes)}`,
      `  manifest  ${manifestDigest}  ${counted(manifest.files.length, 'file')}, ${sizeText(unpackedBytes)}`,
      ...table(['mode', 'size', 'digest', 'path'], rows),
      ...(more > 0 ? [`  and ${more} more (--json lists all)`] : []),
      '  An archive does not prove who made it: the signed targets of its repository do.',
    ],
  };
}

function deltaAnswer(path: string, report: DeltaReport): Answer {
  const { bytes, digest, decodedBytes, listed } = report;
  return {
    outcome: 'intact',
    details: { delta: { path, bytes, digest, decodedBytes }, listed: listed ?? null },
    lines: [
      `INTACT ${path}: ${listed?.isTried === true ? 'applied to its base it produces the signed tree' : 'a valid delta, judged by its own bytes'}`,
      `  delta     ${digest}  ${sizeText(bytes)}, ${sizeText(decodedBytes)} unpacked`,
      ...(listed === undefined
        ? ['  It is not inside a repository that lists it, so its trees are unknown.']
        : listedLines(listed)),
    ],
  };
}

function listedLines({ bundle, channel, serial, from, fromSerial, to, made }: ListedDelta): string[] {
  const base = fromSerial === undefined ? '' : `  serial ${fromSerial}`;
  return [
    `  from      ${from}${base}`,
    `  to        ${to}  serial ${serial}, ${bundle} ${channel}`,
    made === undefined
      ? '  The archive of its base is gone, so it was not tested.'
      : `  makes     ${counted(made.files, 'file')}: ${sizeText(made.copiedBytes)} by ${made.copies} copies, ${sizeText(made.literalBytes)} of its own`,
  ];
}

type ListedDelta = NonNullable<DeltaReport['listed']>;

interface Anchor {
  readonly bytes: Buffer;
  /** `given`: verified from a root of the caller. `first-use`: verified from the repository's own root. */
  readonly kind: 'given' | 'first-use';
}

type Inspected = Awaited<ReturnType<typeof inspectRepository>>;

async function inspectRepository(url: string, flags: InspectFlags, context: CommandContext) {
  const { clock, reporter } = context;
  const source = openRepositorySource(url, { clock, version: context.version });
  try {
    reporter.begin('refresh', url);
    const anchor = flags.root === undefined ? await firstRoot(source) : givenRoot(context.at(flags.root));
    const store = memoryTrustStore(anchor.bytes);
    const client = openRepositoryClient({ source, store, clock });
    const { warnings, requests } = await client.refresh();
    reporter.finish('refresh', `${counted(requests, 'request')} to ${url}`);
    for (const { message } of warnings) reporter.warn(message);
    const list = await client.list();
    return { url, anchor, store, client, list, nowMs: clock.nowMs() };
  } finally {
    await source.close();
  }
}

function givenRoot(path: string): Anchor {
  const verdict = readSmallFile(path, { maxBytes: defaultMetadataLimits.maxRootBytes });
  if (verdict.kind === 'read') return { kind: 'given', bytes: verdict.bytes };
  const { why } = verdict;
  throw new WritError('ROOT_MISSING', `${path} cannot be read: ${why}`, { facts: { path, why } });
}

async function firstRoot(source: RepositorySource): Promise<Anchor> {
  const maxBytes = defaultMetadataLimits.maxRootBytes;
  const verdict = await source.fetch('metadata/1.root.json', { maxBytes });
  if (verdict.kind === 'found') return { kind: 'first-use', bytes: verdict.bytes };
  throw new WritError('METADATA_MISSING', `${source.location} has no metadata/1.root.json`, {
    facts: { location: source.location },
  });
}

function repositoryAnswer(inspected: Inspected): Answer {
  const { url, anchor, nowMs } = inspected;
  const rootDigestHex = createHash('sha256').update(anchor.bytes).digest('hex');
  const roles = rolesOf(inspected);
  const releases = releasesIn(inspected);
  const roleRows = roles.map(({ role, version, keys, threshold, expiresAtMs }) =>
    [role, version, keys, threshold, isoDay(expiresAtMs), timeLeft(expiresAtMs - nowMs)].map(String),
  );
  const releaseRows = releases.map(({ release, file, digest }) => {
    const { bundle, channel, serial, revision, createdAtMs } = release;
    const name = digest === undefined ? '' : shortDigest(digest);
    const made = isoDay(createdAtMs);
    return [
      bundle,
      channel,
      String(serial),
      revision,
      made,
      sizeText(file.length),
      updateText(release),
      name,
    ];
  });
  return {
    outcome: 'verified',
    details: {
      repository: url,
      trust: anchor.kind,
      rootDigest: `sha256:${rootDigestHex}`,
      roles: roles.map(({ expiresAtMs, ...role }) => {
        return { ...role, expires: new Date(expiresAtMs).toISOString() };
      }),
      releases: releases.map(({ path, release, file, digest, listedBy }) => {
        const { createdAtMs, manifest, stamped = {}, deltas, ...rest } = release;
        const createdAt = new Date(createdAtMs).toISOString();
        const archive = { digest, bytes: file.length };
        const manifestDigest = manifest.digest;
        const files = { archive, deltas: deltaDetails(deltas) };
        return { path, ...rest, ...stamped, listedBy, createdAt, manifestDigest, ...files };
      }),
    },
    lines: [
      `VERIFIED ${url} ${anchor.kind === 'given' ? 'from the given root' : 'only from its own first root'}`,
      ...trustLines(anchor, rootDigestHex),
      ...table(['role', 'version', 'keys', 'need', 'expires', 'left'], roleRows),
      ...(releases.length === 0
        ? ['  no bundle is published yet']
        : table(
            ['bundle', 'channel', 'serial', 'revision', 'made', 'size', 'update', 'archive'],
            releaseRows,
          )),
      ...noteLines(releases),
    ],
  };
}

/** One line for each note and no column, because few releases have notes. */
function noteLines(releases: ReturnType<typeof releasesIn>): string[] {
  return releases.flatMap(({ release: { bundle, channel, serial, requires, fixes } }) => [
    ...(requires ? [`  ${bundle} ${channel} ${serial} requires ${requires.join(', ')} of a host`] : []),
    ...(fixes === undefined ? [] : [`  ${bundle} ${channel} ${serial} fixes ${fixes}`]),
  ]);
}

/** The size of an update by delta, as `188 B x4`: the largest of four. Empty when hosts download the archive. */
function updateText({ deltas = [] }: ReleaseInfo): string {
  if (deltas.length === 0) return '';
  return `${sizeText(Math.max(...deltas.map(({ length }) => length)))} x${deltas.length}`;
}

function trustLines({ kind }: Anchor, rootDigestHex: string): string[] {
  const line = `  root fingerprint  ${fingerprint(rootDigestHex)}`;
  if (kind === 'given') return [line];
  return [`${line}   trusted on first use: compare it with the publisher's, or give --root`];
}

function rolesOf({ client, store, list }: Inspected) {
  const status = client.status();
  const root = store.loadRoot().root.signed;
  const topLevel = topLevelRoles.map((role) => {
    const { version = 0, expiresAtMs = 0 } = status?.roles[role] ?? {};
    const { keyids, threshold } = root.roles[role];
    return { role: String(role), version, keys: keyids.length, threshold, keyIds: keyids, expiresAtMs };
  });
  const delegated = list?.delegated ?? [];
  return [...topLevel, ...delegated.map((one) => ({ ...one, keys: one.keyIds.length }))];
}

function releasesIn({ list }: Inspected) {
  return (list?.files ?? []).map(({ path, file, vouchedBy }) => {
    const digest = digestFromHex(file.hashes['sha256']);
    return { path, file, digest, listedBy: vouchedBy.role, release: parseReleaseInfo(file.custom, path) };
  });
}
