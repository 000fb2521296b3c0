// One publish, from a directory to a release that hosts see: read SOURCE, decide whether it is new, pack, sign
// targets, sign snapshot and timestamp where their keys are at hand, verify, go live. Reads top to bottom here;
// each step is another file's.

import type { ArchiveLimits } from '../../core/limits.js';
import { type Digest, targetPath } from '../../core/names.js';
import { diffManifests, type ManifestDifference } from '../../core/release/manifest.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { readManifestOf } from '../archive/archive-reader.js';
import { type PackedBundle, packBundle } from '../archive/build-bundle.js';
import { readSourceTree, type SourceTree } from '../archive/source-tree.js';
import { requireKeysOf } from '../keys/key-directory.js';
import type { Signer } from '../keys/signer.js';
import {
  findHead,
  type ListedRelease,
  liveReleasesOf,
  nextSerial,
  roleOfPath,
} from '../repository/listing.js';
import { entryOf, requireRevision } from '../repository/metadata-content.js';
import { layoutOf } from '../repository/repository-layout.js';
import { isWaiting, type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import type { RepositoryWriter } from '../repository/repository-writer.js';
import type { SignedRole } from '../signing/online-signing.js';
import { type ChangeOptions, type SignedChange, signChange } from '../signing/sign-change.js';
import { holderOfRole, signRole, versionOfRole } from '../signing/sign-role.js';

export interface PublishOptions extends Omit<ChangeOptions, 'holder'> {
  readonly source: string;
  readonly bundle: string;
  readonly channel: string;
  readonly revision: string;
  /** Serials of this bundle to take back with this release, beside those taken back before. */
  readonly withdraw?: readonly number[];
  /** The serial will be above this one, too: hosts know it from a repository that this one replaces. */
  readonly afterSerial?: number;
  readonly limits: ArchiveLimits;
}

export type PublishResult =
  | { readonly kind: 'nothing-new'; readonly release: ReleaseInfo; readonly tree: SourceTree }
  | SignedChange<PublishedRelease>;

/** With the role that lists the path, and its version that does. */
type PublishedRelease = NewRelease & SignedRole;

interface NewRelease {
  readonly release: ReleaseInfo;
  /** The head of the channel before; absent for its first release. */
  readonly previous?: ReleaseInfo;
  readonly tree: SourceTree;
  readonly archiveBytes: number;
  readonly archiveDigest: Digest;
  /** Absent for a first release, or when the archive before it cannot be read. */
  readonly difference?: ManifestDifference;
}

/**
 * Publishes a directory as the next release of a bundle on a channel.
 * @throws WritError SOURCE_REFUSED, KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_NEEDED, PASSPHRASE_WRONG, REPOSITORY_LOCKED,
 *   REPOSITORY_INVALID (nothing went live), SIGNATURE_DISAGREEMENT, USAGE, DISK_*
 */
export async function publishBundle(options: PublishOptions): Promise<PublishResult> {
  requireRevision(options.revision);
  const { report, keys } = options;
  report.begin('read', options.source);
  const tree = readSourceTree(options.source, options.limits);
  const seen = readRepositoryState(layoutOf(options.repository), keys.path);
  const same = sameRelease(seen, tree, options);
  // Before a key is opened or a lock taken: nothing new costs nothing and writes nothing.
  if (same !== undefined && !isWaiting(seen)) {
    return { kind: 'nothing-new', release: same, tree };
  }
  const role = roleOfPath(seen, targetPath(options.bundle, options.channel));
  const signers = await requireKeysOf(keys, holderOfRole(seen, role));
  return signChange<PublishedRelease>(
    { ...options, holder: 'publish' },
    {
      seen,
      sign: async (writer, before) => {
        const { state, release } = await addRelease({ writer, before, tree, signers }, options);
        return { state, done: { ...release, role, version: versionOfRole(state, role) } };
      },
    },
  );
}

/** The head of the channel if it is this very tree, and nothing more is to be withdrawn. */
function sameRelease(
  state: RepositoryState,
  tree: SourceTree,
  { bundle, channel, withdraw = [] }: PublishOptions,
): ReleaseInfo | undefined {
  const head = findHead(state, bundle, channel)?.release;
  if (head === undefined || head.manifest.digest !== tree.manifestDigest) return undefined;
  return withdraw.every((serial) => head.withdrawn.includes(serial)) ? head : undefined;
}

interface Addition {
  readonly writer: RepositoryWriter;
  readonly before: RepositoryState;
  readonly tree: SourceTree;
  readonly signers: readonly Signer[];
}

interface Added {
  readonly state: RepositoryState;
  readonly release: NewRelease;
}

async function addRelease(addition: Addition, options: PublishOptions): Promise<Added> {
  const { writer, before, tree } = addition;
  const { bundle, channel, report } = options;
  const role = roleOfPath(before, targetPath(bundle, channel));
  const live = liveReleasesOf(before).find(({ path }) => path === targetPath(bundle, channel));
  const previous = live?.release;
  report.begin('pack', options.source);
  const archive = await placeArchive(addition, options);
  const { archiveBytes, archiveDigest } = archive;
  const difference = await differenceTo(addition, live, options);
  const common = {
    tree,
    archiveBytes,
    archiveDigest,
    ...(previous === undefined ? {} : { previous }),
    ...(difference === undefined ? {} : { difference }),
  };
  // A publish that was cut off, or made without the online keys, left this release signed: it only goes live now.
  const waiting = sameRelease(before, tree, options);
  if (waiting !== undefined) return { state: before, release: { ...common, release: waiting } };
  const release = describeRelease(before, tree, options);
  report.begin('sign', role);
  const { clock } = options;
  const entries = entryOf({ release, archiveDigest, archiveBytes });
  const state = await signRole({ writer, state: before, role, entries, signers: addition.signers, clock });
  return { state, release: { ...common, release } };
}

function describeRelease(before: RepositoryState, tree: SourceTree, options: PublishOptions): ReleaseInfo {
  const { bundle, channel, revision, clock, withdraw = [] } = options;
  const head = findHead(before, bundle, channel)?.release;
  // Cumulative: a host that slept through the release that took a serial back must still learn of it.
  const withdrawn = [...new Set([...(head?.withdrawn ?? []), ...withdraw])].sort((a, b) => a - b);
  const manifest = { digest: tree.manifestDigest, length: tree.manifestBytes.length };
  const serial = nextSerial(before, bundle, options.afterSerial);
  return { bundle, channel, serial, revision, createdAtMs: clock.nowMs(), manifest, withdrawn };
}

async function placeArchive({ writer, tree }: Addition, options: PublishOptions): Promise<PackedBundle> {
  const { limits, durableFs, signal, bundle, channel } = options;
  const archivePath = writer.temporaryPath();
  const signalOption = signal === undefined ? {} : { signal };
  const packed = await packBundle(tree, { archivePath, limits, durableFs, ...signalOption });
  writer.placeArchive(archivePath, { bundle, channel, digest: packed.archiveDigest });
  return packed;
}

async function differenceTo(
  { tree, writer }: Addition,
  previous: ListedRelease | undefined,
  { limits }: PublishOptions,
): Promise<ManifestDifference | undefined> {
  if (previous === undefined) return undefined;
  const manifest = await readManifestOf(writer.layout, previous.file, previous.release, limits);
  return manifest === undefined ? undefined : diffManifests(manifest, tree.manifest);
}
