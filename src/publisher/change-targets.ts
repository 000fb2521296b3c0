// One change of what the repository lists, without a new tree: decided on a state that verifies, signed by the
// roles that list the paths, taken live where the online keys are at hand. `writ withdraw` and `writ promote`
// decide; the order of writing is here and in online-signing.
import type { OnlineRole, TargetFile } from '../core/tuf-metadata.js';
import type { Clock } from '../platform/clock.js';
import type { DurableFs } from '../platform/durable-fs.js';
import { type KeyDirectory, requireKeysOf } from './key-directory.js';
import { roleOfPath } from './listing.js';
import { findOnlineSigners, type SignedRole, type SignedVersions, signOnline } from './online-signing.js';
import { layoutOf } from './repository-layout.js';
import { isWaiting, type RepositoryState, readRepositoryState } from './repository-state.js';
import { type ArchivePlace, type RepositoryWriter, withRepository } from './repository-writer.js';
import { holderOfRole, signRole } from './sign-role.js';
import type { Signer } from './signer.js';
import { vetWaiting } from './vet-waiting.js';

export interface TargetsChange<Info> {
  /** New entries by path; the role that lists each path signs it. */
  readonly entries: Readonly<Record<string, TargetFile>>;
  /** Archives that have to be there under the name of another channel too. */
  readonly copies: readonly ArchiveCopy[];
  readonly info: Info;
}

export interface ArchiveCopy {
  readonly from: ArchivePlace;
  readonly channel: string;
}

export interface ChangeOptions {
  readonly repository: string;
  readonly keys: KeyDirectory;
  /** For whoever finds the lock held, as `withdraw`. */
  readonly holder: string;
  readonly clock: Clock;
  readonly durableFs: DurableFs;
  readonly lockWaitMs: number;
  readonly report: { begin(step: string, text?: string): void };
  readonly signal?: AbortSignal;
}

export type ChangeResult<Info> =
  | { readonly kind: 'nothing-new' }
  | {
      readonly kind: 'live';
      /** Absent when there was nothing to change, and what waited went live. */
      readonly info?: Info;
      readonly signed: readonly SignedRole[];
      readonly versions: SignedVersions;
    }
  | {
      readonly kind: 'waiting';
      readonly info?: Info;
      readonly signed: readonly SignedRole[];
      readonly missing: readonly OnlineRole[];
    };

/**
 * @param plan asked twice: before a key is opened, and again under the lock; undefined when nothing is to be changed
 * @throws WritError KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_*, REPOSITORY_LOCKED, REPOSITORY_INVALID (nothing went
 *   live), SIGNATURE_DISAGREEMENT, DISK_*, and what plan throws
 */
export async function changeTargets<Info>(
  options: ChangeOptions,
  plan: (state: RepositoryState) => TargetsChange<Info> | undefined,
): Promise<ChangeResult<Info>> {
  const { keys, report } = options;
  const seen = readRepositoryState(layoutOf(options.repository), keys.path);
  const first = plan(seen);
  // Before a key is opened or a lock taken: nothing new costs nothing and writes nothing.
  if (first === undefined && !isWaiting(seen)) return { kind: 'nothing-new' };
  const signers = await openSigners(keys, seen, first);
  const online = await findOnlineSigners(keys, seen);
  return withRepository(options, async (writer) => {
    const read = readRepositoryState(writer.layout, keys.path);
    const before = 'signers' in online ? await vetWaiting(read, options.clock) : read;
    const change = plan(before);
    const done =
      change === undefined
        ? { state: before, signed: [] }
        : await apply({ writer, before, signers, change }, options);
    const common = { signed: done.signed, ...(change === undefined ? {} : { info: change.info }) };
    if (!('signers' in online)) return { ...common, kind: 'waiting', missing: online.missing };
    report.begin('sign', 'snapshot, timestamp');
    const { clock } = options;
    const versions = await signOnline({
      writer,
      state: done.state,
      signers: online.signers,
      clock,
    });
    return { ...common, kind: 'live', versions };
  });
}

type RoleSigners = ReadonlyMap<string, readonly Signer[]>;

async function openSigners(
  keys: KeyDirectory,
  state: RepositoryState,
  change: TargetsChange<unknown> | undefined,
): Promise<RoleSigners> {
  const signers = new Map<string, readonly Signer[]>();
  for (const role of rolesOf(state, change)) {
    signers.set(role, await requireKeysOf(keys, holderOfRole(state, role)));
  }
  return signers;
}

function rolesOf(state: RepositoryState, change: TargetsChange<unknown> | undefined): string[] {
  const paths = Object.keys(change?.entries ?? {});
  return [...new Set(paths.map((path) => roleOfPath(state, path)))];
}

interface Application<Info> {
  readonly writer: RepositoryWriter;
  readonly before: RepositoryState;
  readonly signers: RoleSigners;
  readonly change: TargetsChange<Info>;
}

async function apply<Info>(
  { writer, before, signers, change }: Application<Info>,
  { clock, report }: ChangeOptions,
): Promise<{ state: RepositoryState; signed: SignedRole[] }> {
  for (const { from, channel } of change.copies) writer.copyArchive(from, channel);
  const signed: SignedRole[] = [];
  let state = before;
  for (const role of rolesOf(before, change)) {
    report.begin('sign', role);
    const own = Object.entries(change.entries).filter(([path]) => roleOfPath(before, path) === role);
    const entries = Object.fromEntries(own);
    state = await signRole({ writer, state, role, entries, signers: signers.get(role) ?? [], clock });
    signed.push({ role, version: versionOfRole(state, role) });
  }
  return { state, signed };
}

/** @returns the newest version of a role that lists releases */
export function versionOfRole({ targets, delegated }: RepositoryState, role: string): number {
  const file = role === 'targets' ? targets : delegated.get(role);
  return file?.signed.version ?? 0;
}
