// Publishes a directory as a release that hosts see: read SOURCE, decide whether it is new, pack, sign targets, sign
// snapshot and timestamp where their keys are available, verify, publish. publishBundle does all of it in this order.
// --dry-run runs the same functions without a key and without a write.
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { type ArchiveLimits, maxCreatedAheadMs } from '../../core/limits.js';
import { targetPath } from '../../core/names.js';
import type { DeltaInfo } from '../../core/release/deltas.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { canonicalRequires, isFeature, maxRequires } from '../../core/release/requires.js';
import { packBundle } from '../archive/build-bundle.js';
import { type PackedTree, readSourceTree, requireFiles, type SourceTree } from '../archive/source-tree.js';
import { fillStamps, readStamps, type StampSource } from '../archive/stamp-tree.js';
import { type DeltaPlace, makeDeltas } from '../delta/make-deltas.js';
import { treeOfSource } from '../delta/new-tree.js';
import { requireSourceApart } from '../keys/key-place.js';
import { findHead, nextSerial, roleOfPath, unionOf } from '../repository/listing.js';
import { entryOf, requireText } from '../repository/metadata-content.js';
import { isWaiting, type RepositoryState } from '../repository/repository-state.js';
import type { RepositoryWriter } from '../repository/repository-writer.js';
import { type ChangeOptions, changeRepository, readStateBeforeLock } from '../signing/sign-change.js';
import { describeNewestVersion, requireRoleSigners, signRole } from '../signing/sign-role.js';
import { chooseSigningTimeMs } from '../signing/signing-time.js';
import { type ChangedLines, countChangedLines } from './changed-lines.js';
import {
  type BoundedChange,
  type ChannelHead,
  compareToHeads,
  type HeadChange,
  readHead,
} from './head-change.js';
import { defaultDeltas } from './moved-deltas.js';
import { lastReleases, requireCorrected } from './release-history.js';

export interface PublishOptions extends Omit<ChangeOptions, 'holder'> {
  readonly source: string;
  readonly bundle: string;
  readonly channel: string;
  readonly revision: string;
  /** Serials of this bundle to withdraw with this release, in addition to those withdrawn before. */
  readonly withdraw?: readonly number[];
  /** The serial is also above this one, which hosts know from a repository that this one replaces. */
  readonly afterSerial?: number | undefined;
  /** Paths in SOURCE of the files to stamp. */
  readonly stamp?: readonly string[] | undefined;
  /** Features that a host must support to accept the release. */
  readonly requires?: readonly string[] | undefined;
  /** The serial of the release of this bundle that it corrects. */
  readonly fixes?: number | undefined;
  /** Patterns to leave out of SOURCE, in addition to those of its .writignore. */
  readonly exclude?: readonly string[] | undefined;
  /** Patterns of paths to publish although their name or content shows a secret. */
  readonly include?: readonly string[] | undefined;
  /** The number of last releases of the channel that become base releases of deltas; at most maxDeltas. */
  readonly deltas?: number | undefined;
  /** Bounds on the change compared with the head of the channel; by default none. */
  readonly change?: BoundedChange | undefined;
  readonly limits: ArchiveLimits;
  /** Files with secrets, such as a passphrase. A source that contains one is refused. */
  readonly secretFiles?: readonly string[] | undefined;
}

export type PublishResult = Awaited<ReturnType<typeof publishBundle>>;

/**
 * Publishes a directory as the next release of a bundle on a channel.
 * @returns the release, and the role that lists it with its version
 * @throws WritError SOURCE_REFUSED, SOURCE_NOT_APART, CONTENT_SECRET, RELEASE_UNKNOWN, CHANGE_TOO_LARGE, KEYS_MISSING,
 *   KEY_UNREADABLE, PASSPHRASE_NEEDED, PASSPHRASE_WRONG, REPOSITORY_LOCKED, REPOSITORY_INVALID (nothing was published),
 *   SIGNATURE_DISAGREEMENT, USAGE, DISK_*
 */
export async function publishBundle(given: PublishOptions) {
  const options = { ...given, holder: 'publish' };
  const { keys, report } = options;
  const tree = await readPublished(options);
  const source = readStamps(tree, options.stamp ?? []);
  const seen = readStateBeforeLock(options);
  const known = findSameRelease(seen, source, options);
  // Returns before a key is opened or a lock is taken, so that an unchanged tree costs no passphrase and no write.
  if (known !== undefined && !isWaiting(seen)) return { kind: 'nothing-new', release: known, tree } as const;
  if (known === undefined) requireCorrected(seen, options);
  // A waiting release was within the bounds, or accepted, when it was signed.
  const first = known === undefined ? await compareTree(seen, tree, options) : undefined;
  requireFiles(tree);
  const path = targetPath(options.bundle, options.channel);
  const signers = await requireRoleSigners(keys, seen, roleOfPath(seen, path));
  return changeRepository(options, seen, async (writer, before, clock) => {
    // An interrupted publish, or one without the online keys, has signed this release already. It is only published now.
    const waiting = findSameRelease(before, source, options);
    // Compared again before a file is placed, because another publisher may have moved the head since.
    const bounds = waiting === undefined ? options.change : undefined;
    const compared = await compareTree(before, tree, { ...options, change: bounds, known: first?.head });
    report.begin('pack', options.source);
    const serial = waiting?.serial ?? nextSerial(before, options.bundle, options.afterSerial);
    const packed = fillStamps(source, { ...options, serial });
    const archive = await placeArchive(writer, packed, options);
    // A waiting release keeps the deltas that were signed with it.
    const deltas = waiting?.deltas ?? (await placeDeltas(writer, before, { packed, ...archive }, options));
    const lines = await countLines(before, tree, compared, options);
    const release = waiting ?? describeRelease(before, { packed, source, serial, deltas }, options);
    const role = roleOfPath(before, path);
    let state = before;
    if (waiting === undefined) {
      report.begin('sign', role);
      const entries = { [path]: entryOf(release, archive) };
      state = await signRole({ writer, state, role, entries, signers, clock });
    }
    const done = {
      release,
      ...pickComparison(compared),
      lines,
      tree,
      ...archive,
      ...describeNewestVersion(state, role),
    };
    return { state, done };
  });
}

/** @throws WritError SOURCE_REFUSED, SOURCE_NOT_APART, CONTENT_SECRET, USAGE */
async function readPublished(options: PublishOptions): Promise<SourceTree> {
  const { source, keys, repository, secretFiles, report } = options;
  requireText(options.revision, 'the revision');
  requireFeatures(options.requires);
  requireSourceApart(source, { keysDirectory: keys.path, repository, secretFiles });
  report.begin('read', source);
  return readSourceTree(source, options.limits, { ...options, empty: 'read' });
}

/** @throws WritError USAGE for a requirement that hosts would refuse as malformed */
function requireFeatures(names: readonly string[] = []): void {
  const wrong = names.find((name) => !isFeature(name));
  if (wrong === undefined && new Set(names).size <= maxRequires) return;
  const message = wrong === undefined ? 'too many features are required' : `${wrong} is not a feature name`;
  throw new WritError('USAGE', message, {
    facts: wrong === undefined ? { expected: maxRequires, actual: names.length } : { feature: wrong },
    hint: `At most ${maxRequires} names of up to 64 of a-z 0-9 . - that begin with a letter or digit, for example waves-1.`,
  });
}

/**
 * @returns the head of the channel where it has this tree with the same stamps and requirements, and nothing more is to be
 *   withdrawn
 */
function findSameRelease(
  state: RepositoryState,
  source: StampSource,
  { bundle, channel, limits, withdraw = [], requires = [], fixes, clock }: PublishOptions,
): ReleaseInfo | undefined {
  const head = findHead(state, bundle, channel)?.release;
  if (head === undefined) return undefined;
  // A clock that was ahead made the head, and hosts refuse it until then. They need a newer release with the right time.
  if (head.createdAtMs > chooseSigningTimeMs(state, clock.nowMs()) + maxCreatedAheadMs) return undefined;
  // The tree is stamped like the head and compared by its digest, because the `source` that the head records does not prove
  // its content.
  const { manifestDigest } = fillStamps(source, { serial: head.serial, limits });
  const isSame = manifestDigest === head.manifest.digest;
  if (!isDeepStrictEqual(head.requires, canonicalRequires(requires))) return undefined;
  // A nightly job publishes the same tree again without the --fixes flag of a person, and must not create a release for
  // that.
  if (fixes !== undefined && head.fixes !== fixes) return undefined;
  return isSame && withdraw.every((serial) => head.withdrawn.includes(serial)) ? head : undefined;
}

interface NewTree {
  readonly packed: PackedTree;
  readonly source: StampSource;
  readonly serial: number;
  readonly deltas?: readonly DeltaInfo[];
}

function describeRelease(
  before: RepositoryState,
  { packed, source: { stamped }, serial, deltas = [] }: NewTree,
  options: PublishOptions,
): ReleaseInfo {
  const { bundle, channel, revision, clock, withdraw, fixes } = options;
  const requires = canonicalRequires(options.requires ?? []);
  const manifest = { digest: packed.manifestDigest, length: packed.manifestBytes.length };
  // Cumulative, because a host that missed the withdrawing release must still learn of the withdrawal.
  const withdrawn = unionOf(findHead(before, bundle, channel)?.release.withdrawn ?? [], withdraw);
  const release = { bundle, channel, serial, revision, createdAtMs: clock.nowMs(), manifest, withdrawn };
  const made = deltas.length === 0 ? undefined : deltas;
  return { ...release, ...given({ stamped, deltas: made, requires, fixes }) };
}

async function placeArchive(writer: RepositoryWriter, tree: PackedTree, options: PublishOptions) {
  const { bundle, channel } = options;
  const archivePath = writer.temporaryPath();
  const { archiveBytes, archiveDigest } = await packBundle(tree, { ...options, archivePath });
  writer.placeFile(archivePath, { kind: 'archive', bundle, channel, digest: archiveDigest });
  return { archiveBytes, archiveDigest };
}

async function placeDeltas(
  place: DeltaPlace,
  before: RepositoryState,
  { packed, archiveBytes }: { readonly packed: PackedTree; readonly archiveBytes: number },
  options: PublishOptions,
): Promise<readonly DeltaInfo[]> {
  const { bundle, channel, deltas = defaultDeltas, report } = options;
  if (deltas === 0) return [];
  const releases = lastReleases(before, { bundle, channel, count: deltas });
  if (releases.length > 0) report.begin('delta', `from ${releases.length} earlier releases`);
  return makeDeltas(place, treeOfSource(packed), releases, { ...options, archiveBytes });
}

interface Comparing extends Pick<PublishOptions, 'bundle' | 'channel' | 'fixes' | 'limits' | 'change'> {
  /** The head as it was read before the lock. */
  readonly known?: ChannelHead | undefined;
}

async function compareTree(
  state: RepositoryState,
  { manifest }: SourceTree,
  options: Comparing,
): Promise<HeadChange> {
  const { limits, change: bounds } = options;
  const head = await readHead(state, options, options);
  return compareToHeads(state, options, { head, after: manifest, bounds, limits });
}

async function countLines(
  { layout }: RepositoryState,
  tree: SourceTree,
  { head, change }: HeadChange,
  { limits, report }: PublishOptions,
): Promise<ChangedLines | undefined> {
  if (head?.manifest === undefined || change === undefined) return undefined;
  report.begin('compare', `with serial ${head.listed.release.serial}`);
  return countChangedLines({ layout, head: head.listed, manifest: head.manifest, tree, change, limits });
}

/** Without a difference where the archive of the head cannot be read. */
function pickComparison({ head, change, accepted, withinBoundsOf }: HeadChange) {
  return { previous: head?.listed.release, difference: change?.difference, change, accepted, withinBoundsOf };
}

export type PreviewResult = Awaited<ReturnType<typeof previewPublish>>;

/**
 * Reports what a publish would do. Opens no key and leaves the repository as it is; packs in a temporary directory.
 * @returns `nothing-new` with the release that has this tree already; or `would-publish` with the release as it would be
 *   listed, the bytes of its archive, and the comparison with the head. `previous` is absent for the first release of a
 *   channel; `lines` is absent if nothing can be compared
 * @throws WritError SOURCE_REFUSED, CONTENT_SECRET, RELEASE_UNKNOWN, CHANGE_TOO_LARGE, REPOSITORY_INVALID, USAGE, DISK_*
 */
export async function previewPublish(options: PublishOptions) {
  const tree = await readPublished(options);
  const source = readStamps(tree, options.stamp ?? []);
  const state = readStateBeforeLock(options);
  const known = findSameRelease(state, source, options);
  if (known !== undefined) return { kind: 'nothing-new', release: known, tree } as const;
  requireCorrected(state, options);
  const compared = await compareTree(state, tree, options);
  requireFiles(tree);
  const serial = nextSerial(state, options.bundle, options.afterSerial);
  const packed = fillStamps(source, { ...options, serial });
  const { archiveBytes, deltas } = await tryPacking(state, packed, options);
  const release = describeRelease(state, { packed, source, serial, deltas }, options);
  const lines = await countLines(state, tree, compared, options);
  return { kind: 'would-publish', release, tree, archiveBytes, ...pickComparison(compared), lines } as const;
}

/**
 * Packs and makes deltas in a temporary directory, because only that shows whether hosts would accept the archive, and
 * which deltas save enough.
 */
async function tryPacking(state: RepositoryState, packed: PackedTree, options: PublishOptions) {
  const { limits, durableFs, report } = options;
  const directory = fs.mkdtempSync(join(tmpdir(), 'writ-preview-'));
  let files = 0;
  const place: DeltaPlace = {
    layout: state.layout,
    temporaryPath: () => join(directory, String(files++)),
    placeFile: () => undefined,
  };
  try {
    report.begin('pack', options.source);
    const archivePath = place.temporaryPath();
    const { archiveBytes } = await packBundle(packed, { archivePath, limits, durableFs, report });
    return { archiveBytes, deltas: await placeDeltas(place, state, { packed, archiveBytes }, options) };
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}
