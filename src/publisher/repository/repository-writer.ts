// Every write to a repository: under its lock, each file durable before the next, under a version that was never used, and
// the timestamp last. After a kill at any point, clients see an intact repository: the old one before the rename of the
// timestamp, the new one after it.
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { LockHolder } from '../../platform/disk/find-lock-holder.js';
import { takeLock } from '../../platform/disk/process-lock.js';
import type { Clock } from '../../platform/time/clock.js';
import {
  type FilePlace,
  layoutOf,
  metadataName,
  nextVersionOf,
  noRepository,
  pathOf,
  type RepositoryLayout,
  removeLeftovers,
} from './repository-layout.js';
import { requireOwnRepository } from './repository-owner.js';

export type RepositoryWriter = ReturnType<typeof createWriter>;

/** How long to wait for another writer, and the callback that reports its lock. */
export interface LockWait {
  readonly lockWaitMs: number;
  readonly onLockWait?: ((holder: LockHolder) => void) | undefined;
}

export interface WriterOptions extends LockWait {
  readonly repository: string;
  /** The name of this command in the lock, which a waiting command shows, as `publish`. */
  readonly holder: string;
  readonly clock: Clock;
  readonly durableFs: DurableFs;
}

/**
 * Removes the temporary files of a killed writer, and runs `act` while it holds the repository's lock. `act` receives the
 * removed paths.
 * @throws WritError REPOSITORY_LOCKED, REPOSITORY_OWNER, REPOSITORY_INVALID without a repository, and every error of `act`
 */
export async function withRepository<T>(
  options: WriterOptions,
  act: (writer: RepositoryWriter, leftovers: readonly string[]) => Promise<T>,
): Promise<T> {
  const layout = layoutOf(options.repository);
  if (!fs.existsSync(layout.metadata)) throw noRepository(options.repository);
  requireOwnRepository(options.repository);
  const lock = await takeLock({
    path: layout.lock,
    holder: options.holder,
    waitMs: options.lockWaitMs,
    onWait: options.onLockWait,
    clock: options.clock,
    durable: options.durableFs,
    code: 'REPOSITORY_LOCKED',
  });
  try {
    const leftovers = removeLeftovers(layout);
    return await act(createWriter(layout, options), leftovers);
  } finally {
    lock.release();
  }
}

/** Only for `init`, which creates the directory of the lock. All other callers use withRepository. */
export function createWriter(
  layout: RepositoryLayout,
  { durableFs, clock }: Pick<WriterOptions, 'durableFs' | 'clock'>,
) {
  const temporaryPath = (): string => join(layout.directory, `.writ-tmp-${randomBytes(6).toString('hex')}`);
  return {
    layout,
    /** A path for a new file before its digest is known, on the file system of the repository. */
    temporaryPath,
    /** Moves a complete and flushed file to its place. */
    placeFile: (from: string, place: FilePlace): void => {
      const directory = join(layout.targets, place.bundle);
      if (!fs.existsSync(directory)) {
        durableFs.makeDirectory('repo.bundle-directory', directory, 0o755);
        durableFs.flushDirectory('repo.bundle-directory:flush', layout.targets);
      }
      durableFs.rename(`repo.${place.kind}`, from, join(layout.targets, pathOf(place)));
    },
    /** Links a present file under its name on another channel of the bundle. */
    copyFile: (place: FilePlace, channel: string): void => {
      const [from, copy] = [place, { ...place, channel }].map((one) => join(layout.targets, pathOf(one)));
      if (from !== undefined && copy !== undefined) durableFs.linkFile(`repo.${place.kind}-copy`, from, copy);
    },
    /** @returns as nextVersionOf. @throws WritError REPOSITORY_INVALID */
    nextVersion: (role: string, liveVersion: number): number => nextVersionOf(layout, role, liveVersion),
    writeMetadata: (role: string, version: number, bytes: Uint8Array): void => {
      const path = join(layout.metadata, metadataName(role, version));
      // Clients treat a second content of the same version as an attack.
      if (fs.existsSync(path)) {
        throw new WritError('REPOSITORY_INVALID', `${path} exists`, { facts: { path } });
      }
      durableFs.writeFile(`repo.${operationOf(role)}`, path, bytes, 0o644);
    },
    /** Replaces the timestamp: the only step that clients see. */
    publishTimestamp: (timestamp: Uint8Array): void => {
      const temporary = join(layout.metadata, `.writ-tmp-${randomBytes(6).toString('hex')}`);
      try {
        durableFs.createFile('repo.timestamp:write', temporary, timestamp, 0o644);
        setLaterTime(temporary, layout.timestamp, clock.nowMs(), durableFs);
        durableFs.rename('repo.timestamp', temporary, layout.timestamp);
      } catch (error) {
        fs.rmSync(temporary, { force: true });
        throw error;
      }
    },
  };
}

const topLevel: readonly string[] = ['root', 'snapshot', 'targets'];

/** Labelled operations are a small fixed set, so all teams share one label. */
function operationOf(role: string): string {
  return topLevel.includes(role) ? role : 'delegated';
}

/**
 * Sets a time in a later second than before, because nginx computes the ETag from seconds and size. A poll would otherwise
 * miss a second file within one second.
 */
function setLaterTime(temporary: string, live: string, nowMs: number, durableFs: DurableFs): void {
  const last = fs.statSync(live, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const seconds = Math.max(Math.floor(nowMs / 1000), Math.floor(last / 1000) + 1);
  const descriptor = fs.openSync(temporary, 'r');
  try {
    fs.futimesSync(descriptor, seconds, seconds);
    durableFs.flushDescriptor('repo.timestamp:time', descriptor, temporary);
  } finally {
    fs.closeSync(descriptor);
  }
}
