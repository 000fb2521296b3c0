// Signs snapshot and timestamp again: for `writ refresh`, and for the server by time or where a publish waits. Files that hosts
// would refuse stay unpublished, and are reported.
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { keyId } from '../../core/tuf/signature-schemes.js';
import { type OnlineRole, onlineRoles } from '../../core/tuf/tuf-metadata.js';
import { findRefusedListings, type RefusedListing } from '../repository/delegated-files.js';
import { type IgnoredFile, ignoredHint, ignoredText } from '../repository/ignored-file.js';
import { handedOverBy, listNewReleases } from '../repository/listing.js';
import type { MissingFiles } from '../repository/live-files.js';
import { findPassedOver } from '../repository/passed-over.js';
import { metadataName } from '../repository/repository-layout.js';
import { isWaiting, type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import {
  type RepositoryWriter,
  type WriterOptions,
  withRepository,
} from '../repository/repository-writer.js';
import type { SnapshotMemory } from '../repository/snapshot-memory.js';
import { omitUnacceptableFiles } from './omit-unacceptable-files.js';
import { listWaitingRoles, type OnlineSigners, signOnline, timestampDueAtMs } from './online-signing.js';
import {
  type ClockCheck,
  chooseSigningTimeMs,
  measureSignedAheadMs,
  requireReliableClock,
  type SigningClock,
} from './signing-time.js';

export interface ResignOptions extends WriterOptions {
  readonly signers: OnlineSigners;
  readonly roles: readonly OnlineRole[];
  /** The directory with the publisher's copy of the root; undefined: the first root of the repository is trusted. */
  readonly keysDirectory?: string;
  readonly clockCheck?: ClockCheck | undefined;
  /** Left out: refused. */
  readonly missingFiles?: MissingFiles | undefined;
  /** Of the earlier signatures of a server; left out: none. */
  readonly snapshotMemory?: SnapshotMemory | undefined;
}

export type ResignResult = Awaited<ReturnType<typeof resignOnline>>;

/**
 * Re-signs for `writ refresh`.
 * @throws WritError REPOSITORY_LOCKED, REPOSITORY_INVALID, SIGNATURE_DISAGREEMENT, DISK_*
 */
export async function resignOnline(options: ResignOptions) {
  return withRepository(options, async (writer) => {
    const reading = await readToSign(writer, options, isUnexpected);
    return signAgain(writer, options, reading);
  });
}

/**
 * Re-signs for the server, when a quarter of the validity period has passed or a publish waits.
 * @param options `isDueByTime`: false where only newer files are the reason. Then nothing is signed without one that may be published
 * @returns the newer files that hosts would refuse and that are not published
 * @throws WritError as resignOnline
 */
export async function resignDueRoles(
  options: ResignOptions & { readonly isDueByTime: boolean },
): Promise<readonly IgnoredFile[]> {
  return withRepository(options, async (writer) => {
    const reading = await readToSign(writer, options, isOfTargets);
    const { state } = reading;
    const isNeeded = options.isDueByTime || isWaiting(state) || state.outdated.length > 0;
    if (isNeeded) await signAgain(writer, options, reading);
    return state.ignored;
  });
}

interface SignableState {
  /** As it is on disk. */
  readonly read: RepositoryState;
  /** Without waiting files that hosts would refuse. */
  readonly state: RepositoryState;
  readonly clock: SigningClock;
}

/** @param stops true for the name of a newer file that hosts would refuse, and that a person must examine first */
async function readToSign(
  writer: RepositoryWriter,
  options: ResignOptions,
  stops: (name: string, state: RepositoryState) => boolean,
): Promise<SignableState> {
  const { missingFiles, keysDirectory, snapshotMemory } = options;
  const read = readRepositoryState(writer.layout, keysDirectory, { missingFiles, snapshotMemory });
  const clock = await requireReliableClock(options, read);
  const state = await omitUnacceptableFiles(read, clock);
  const files = state.ignored.filter(({ name }) => stops(name, state));
  requireNothingIgnored(state, files, chooseSigningTimeMs(state, clock.nowMs()));
  return { read, state, clock };
}

async function signAgain(
  writer: RepositoryWriter,
  { signers, roles }: ResignOptions,
  { read, state, clock }: SignableState,
) {
  requireListedSigners(state, signers);
  const aheadMs = measureSignedAheadMs(state, clock.nowMs());
  const versions = await signOnline({ writer, state, signers, roles, clock });
  return {
    versions,
    /** Milliseconds from the clock to the time of the signatures, where an earlier signature is later. */
    ...given({ signedAheadMs: aheadMs }),
    /** The version of targets that was published before. */
    targetsBefore: state.live.targets.signed.version,
    /** Roles with a newer version that waited before and is published now. */
    wentLive: listWaitingRoles(state),
    /** Releases that hosts see now, and did not see before. */
    newReleases: listNewReleases(state),
    /** What was left out with a published snapshot that lists missing files; absent where that snapshot was used. */
    ...given({ passedOver: findPassedOver(read) }),
    /** Listed files of teams that are missing or damaged: hosts accept no new release of these teams. */
    damaged: listDamaged(state),
    /** Newer files that hosts would refuse and that were not published. */
    ignored: state.ignored,
  };
}

/**
 * Refuses signers that a newer root does not list any more. Otherwise a snapshot would be written that every host refuses.
 * @throws WritError KEYS_MISSING
 */
function requireListedSigners({ live }: RepositoryState, signers: OnlineSigners): void {
  for (const role of onlineRoles) {
    const { keyids, threshold } = live.root.signed.roles[role];
    const listed = signers[role].filter(({ keys }) => keys.some((key) => keyids.includes(keyId(key))));
    if (listed.length >= threshold) continue;
    throw new WritError('KEYS_MISSING', `the root no longer lists the ${role} keys at hand`, {
      facts: { role, expected: threshold, actual: listed.length, keyIds: keyids },
      hint: 'Put the new keys in the place of the old ones.',
    });
  }
}

/**
 * Newer files that hosts would refuse come from a mistake or an attack, and a person must examine them. They stop the signing
 * only while the timestamp is new, because a bad file must not make the good policy of all hosts stale.
 */
function requireNothingIgnored(state: RepositoryState, files: readonly IgnoredFile[], nowMs: number): void {
  const [first] = files;
  if (first === undefined || isWaiting(state) || nowMs >= timestampDueAtMs(state)) return;
  const more = files.length === 1 ? '' : ` (and ${files.length - 1} more)`;
  const { code, facts } = first.cause;
  throw new WritError('REPOSITORY_INVALID', `${ignoredText(first)}${more}`, {
    facts: { ...facts, clientCode: code, ignored: files.map(({ name }) => name) },
    hint: ignoredHint(first),
    cause: first.cause,
  });
}

function listDamaged({ layout, live, targets, delegated }: RepositoryState): readonly RefusedListing[] {
  const refused = findRefusedListings(layout, live.snapshot.signed.meta, targets);
  return [...refused.values()].filter(({ role, hasOtherKeys }) => !hasOtherKeys && !delegated.has(role));
}

/** A team delays only its own releases: the server goes on without a file of a team. */
function isOfTargets(name: string): boolean {
  return name === metadataName('targets', Number.parseInt(name, 10));
}

/** After a change of the keys of a team, a waiting file of the former keys stays until the team signs. */
function isUnexpected(name: string, { targets }: RepositoryState): boolean {
  const version = Number.parseInt(name, 10);
  return !Object.entries(handedOverBy(targets)).some(
    ([role, { after }]) => name === metadataName(role, version) && version <= after,
  );
}
