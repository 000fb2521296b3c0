// A signed repository in a temporary directory, made by the publisher, with keys that need no passphrase.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type ArchiveLimits, defaultArchiveLimits } from '../../../src/core/limits.js';
import type { OnlineRole } from '../../../src/core/tuf/tuf-metadata.js';
import type { WorkReport } from '../../../src/core/work-report.js';
import { createDurableFs, type DurableFs } from '../../../src/platform/disk/durable-fs.js';
import { type Clock, systemClock } from '../../../src/platform/time/clock.js';
import type { KeyDirectory } from '../../../src/publisher/keys/key-directory.js';
import type { BoundedChange } from '../../../src/publisher/release/head-change.js';
import { type PublishResult, publishBundle } from '../../../src/publisher/release/publish.js';
import {
  defaultValidityPeriods,
  type ValidityPeriods,
} from '../../../src/publisher/repository/metadata-content.js';
import { type InitResult, initRepository } from '../../../src/publisher/root/init-repository.js';
import { openOnlineSigners } from '../../../src/publisher/signing/online-signing.js';
import { type ResignResult, resignOnline } from '../../../src/publisher/signing/resign-online.js';
import type { ChangeOptions } from '../../../src/publisher/signing/sign-change.js';
import { fakeClock } from '../clock/fake-clock.js';
import type { TempDir } from '../disk/temp-dir.js';
import { writeTree } from '../disk/write-tree.js';
import { type Places, repositoryStock } from './repository-stock.js';

export interface SampleRepository {
  readonly directory: string;
  readonly keys: string;
  /** `file:///...` */
  readonly url: string;
  /** Path of the bootstrap root for hosts. */
  readonly rootPath: string;
  readonly clock: Clock;
  readonly init: InitResult;
  /** Publishes these files (see writeTree); as `dns-edge` on `stable` by default. */
  publish(files: SampleFiles, options?: SamplePublishOptions): Promise<PublishResult>;
  /** Re-signs the online roles. */
  refresh(roles?: readonly OnlineRole[]): Promise<ResignResult>;
}

export type SampleFiles = Readonly<Record<string, string | Uint8Array>>;

export interface SamplePublishOptions {
  readonly bundle?: string;
  readonly channel?: string;
  readonly revision?: string;
  readonly withdraw?: readonly number[];
  readonly stamp?: readonly string[];
  readonly afterSerial?: number;
  readonly deltas?: number;
  readonly requires?: readonly string[];
  readonly fixes?: number;
  /** Undefined: no bounds. */
  readonly change?: BoundedChange;
  /** Another directory of keys, for example without the online keys. */
  readonly keys?: string;
  readonly durableFs?: DurableFs;
  readonly limits?: ArchiveLimits;
  readonly report?: WorkReport;
}

export interface SampleRepositoryOptions {
  /** A fake clock of 2026-11-01 by default. Tests with real processes that check expiry need the real clock. */
  readonly clock?: Clock;
  readonly validity?: Partial<ValidityPeriods>;
  readonly rootKeys?: number;
  readonly rootThreshold?: number;
  /** `own`: no other repository has these keys. By default a process makes them once for all equal repositories. */
  readonly signers?: 'own';
}

const noPassphrases: KeyDirectory['passphrases'] = { ask: async () => undefined };
/** @returns the options of commands that change targets */
export function changeOptions(
  repository: SampleRepository,
  given: { readonly keys?: string; readonly durableFs?: DurableFs } = {},
): ChangeOptions {
  return {
    repository: repository.directory,
    keys: { path: given.keys ?? repository.keys, passphrases: noPassphrases },
    holder: 'test',
    clock: repository.clock,
    durableFs: given.durableFs ?? createDurableFs(),
    lockWaitMs: 0,
    report: noReport,
  };
}

/** @returns a directory with these keys of the repository */
export function someKeys(dir: TempDir, repository: SampleRepository, ...names: readonly string[]): string {
  const path = dir.join(`keys-${names.join('-')}`);
  fs.mkdirSync(path, { recursive: true });
  for (const name of names) fs.copyFileSync(join(repository.keys, name), join(path, name));
  return path;
}

export const noReport: WorkReport = { begin: () => undefined, progress: () => undefined };

const stock = repositoryStock();

/** Keys cost the most, so that equal repositories are copies of the first one except for their paths. */
function made(options: SampleRepositoryOptions & { readonly clock: Clock }, places: Places): InitResult {
  const { clock, validity, rootKeys = 3, rootThreshold = 2 } = options;
  const make = (): InitResult =>
    initRepository({
      repository: places.directory,
      keysDirectory: places.keys,
      rootKeys,
      rootThreshold,
      spareRootKey: 'waived',
      validity: { ...defaultValidityPeriods, ...validity },
      clock,
      durableFs: createDurableFs(),
    });
  if (options.signers === 'own' || validity !== undefined) return make();
  // Some seconds of the real clock do not matter for roles that are valid for days.
  const time = clock === systemClock ? 'now' : clock.nowMs();
  return stock(`${rootKeys} ${rootThreshold} ${time}`, places, make);
}

/** @returns a repository without a release in `repo/` below `dir`, its keys in `keys/` */
export function sampleRepository(dir: TempDir, options: SampleRepositoryOptions = {}): SampleRepository {
  const directory = dir.join('repo');
  const keys = dir.join('keys');
  const clock = options.clock ?? fakeClock();
  const durableFs = createDurableFs();
  const init = made({ ...options, clock }, { directory, keys });
  let sources = 0;
  return {
    directory,
    keys,
    url: pathToFileURL(directory).href,
    rootPath: init.rootPath,
    clock,
    init,
    publish: (files, given = {}) => {
      sources += 1;
      return publishBundle({
        source: writeTree(dir.join(`source-${sources}`), files),
        repository: directory,
        keys: { path: given.keys ?? keys, passphrases: noPassphrases },
        bundle: given.bundle ?? 'dns-edge',
        channel: given.channel ?? 'stable',
        revision: given.revision ?? `r${sources}`,
        limits: given.limits ?? defaultArchiveLimits,
        clock,
        durableFs: given.durableFs ?? durableFs,
        lockWaitMs: 0,
        report: given.report ?? noReport,
        stamp: given.stamp,
        deltas: given.deltas,
        requires: given.requires,
        fixes: given.fixes,
        change: given.change,
        ...(given.withdraw === undefined ? {} : { withdraw: given.withdraw }),
        ...(given.afterSerial === undefined ? {} : { afterSerial: given.afterSerial }),
      });
    },
    refresh: async (roles = ['snapshot', 'timestamp']) => {
      const signers = await openOnlineSigners(directory, { path: keys, passphrases: noPassphrases });
      const holder = 'refresh';
      return resignOnline({ repository: directory, signers, roles, clock, durableFs, holder, lockWaitMs: 0 });
    },
  };
}

/** @param name as `3.targets.json`. @returns its path */
export function metadataPath(repository: SampleRepository, name: string): string {
  return join(repository.directory, 'metadata', name);
}
