// Runs the checks of a host on unsigned directories (`writ check`): packed as a publisher packs them, they pass the steps of a
// pull from the archive to the last check, in a private directory. Reads no state of the host, contacts no server and no worker,
// and activates nothing.
import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { AgentConfig, BundleConfig } from '../../core/config/config.js';
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { type Digest, digestHex, targetPath } from '../../core/names.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import type { SandboxStatus } from '../../core/status/status.js';
import { createDurableFs, type DurableFs } from '../../platform/disk/durable-fs.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { resolveGroup } from '../../platform/users/group-id.js';
import type { Receive } from '../../trust/download.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import { openFileSource } from '../../trust/sources/file-source.js';
import { createSandbox } from '../hooks/sandbox.js';
import type { Selection } from '../select/selection.js';
import { fetchArchive } from '../staging/fetch-archive.js';
import { stageBundle } from '../staging/stage-bundle.js';
import type { StagedBundle } from '../staging/staged-bundle.js';
import { type HostPaths, hostPaths } from '../state/paths.js';
import { checkOnce } from './check-candidate.js';
import type { BundleCheckReport } from './run-checks.js';

/** A directory, packed as a publisher packs it before signing. */
export interface PackedSource {
  readonly bundle: BundleConfig;
  readonly archivePath: string;
  readonly archiveBytes: number;
  readonly archiveDigest: Digest;
  readonly manifest: ReleaseInfo['manifest'];
}

export interface CheckSourceOptions {
  readonly config: AgentConfig;
  /** At least one; together they are the candidate. */
  readonly sources: readonly PackedSource[];
  /** A private, existing directory; the caller removes it. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface SourceVerdict {
  readonly reports: readonly BundleCheckReport[];
  /** The worst problem of each bundle that has one. */
  readonly problems: ReadonlyMap<string, WritError>;
  /** How the commands were confined. */
  readonly sandbox: SandboxStatus;
}

/**
 * Stages unsigned sources, and runs every check of their bundles once. Writes only below `directory`.
 * @returns the report of each check; in `problems` the worst problem of each refused bundle, by bundle name; the state of the
 *   sandbox. A refused source is no error: `problems` has it. An empty map: every check accepts
 * @throws WritError for a source that staging refuses on any host with this configuration: ARCHIVE_LIMIT, ENTRY_REFUSED,
 *   MANIFEST_MALFORMED, MANIFEST_MISMATCH
 * @throws WritError INTERRUPTED when `signal` aborts; DISK_* if the directory cannot be written
 */
export async function checkSource(options: CheckSourceOptions): Promise<SourceVerdict> {
  const { config, sources, directory, clock, log, signal } = options;
  const durable = createDurableFs();
  const staging = join(directory, 'staging');
  // As the staging area of a cycle: other users may pass through and cannot list it.
  durable.makeDirectory('check.staging', staging, 0o711);
  const mtimeSeconds = Math.floor(clock.nowMs() / 1000);
  const staged = new Map<string, StagedBundle>();
  for (const source of sources) {
    staged.set(source.bundle.name, await stageSource(source, { ...options, durable, staging, mtimeSeconds }));
  }
  const sandbox = createSandbox({ mode: config.sandbox, log });
  const paths = choosePaths(config, directory, durable);
  const host = { config, paths, durable, clock, log, sandbox };
  const { reports, refusals: problems } = await checkOnce(
    host,
    sources.map(({ bundle }) => selectionOf(bundle, staged.get(bundle.name))),
    { staging, mtimeSeconds, signal, generation: 1, staged, active: new Map(), prefer: 'archive' },
    join(staging, 'candidate-0'),
  );
  return { reports, problems, sandbox: sandbox.status() };
}

function selectionOf(bundle: BundleConfig, staged: StagedBundle | undefined): Selection {
  if (staged === undefined) throw new WritError('INTERNAL', `nothing of ${bundle.name} was staged`);
  const { name, channel } = bundle;
  return {
    kind: 'take',
    bundle,
    target: staged.target,
    result: { bundle: name, channel, outcome: 'activated' },
  };
}

interface StageSourceOptions extends CheckSourceOptions {
  readonly durable: DurableFs;
  readonly staging: string;
  readonly mtimeSeconds: number;
}

async function stageSource(
  source: PackedSource,
  { config, durable, staging, mtimeSeconds, clock, signal }: StageSourceOptions,
): Promise<StagedBundle> {
  const { name } = source.bundle;
  const target = targetOf(source, clock.nowMs());
  const fetched = join(staging, `fetch-${name}`);
  durable.makeDirectory('check.fetch', fetched, 0o700);
  const client = { download: createFileDownload(source.archivePath) };
  const { limits } = config;
  const archive = await fetchArchive({ client, target, directory: fetched, fs: durable, limits, signal });
  return stageBundle({
    ...{ archive, fs: durable, limits, mtimeSeconds, signal, ...treeOwnership(source.bundle) },
    directory: join(staging, `tree-${name}`),
  });
}

/** @returns the target that a publisher would sign; its signing role is a placeholder */
function targetOf(
  { bundle, archiveBytes, archiveDigest, manifest }: PackedSource,
  nowMs: number,
): SignedTarget {
  const { name, channel } = bundle;
  const path = targetPath(name, channel);
  const release: ReleaseInfo = {
    ...{ bundle: name, channel, serial: 1, revision: '', createdAtMs: nowMs, manifest, withdrawn: [] },
  };
  return {
    path,
    file: { length: archiveBytes, hashes: { sha256: digestHex(archiveDigest) } },
    archivePath: path,
    length: archiveBytes,
    digest: archiveDigest,
    release,
    vouchedBy: { role: 'nobody', bytes: new Uint8Array(), rootVersion: 0, chain: [] },
  };
}

/** @returns a download that reads the archive from the disk, as for a repository in a directory */
function createFileDownload(path: string) {
  const source = openFileSource(dirname(path), path);
  return async (
    target: SignedTarget,
    receive: Receive,
    given: AbortSignal = neverAborted,
  ): Promise<readonly []> => {
    const { length } = target;
    await receive(
      ({ onBegin }, signal) => source.stream(basename(path), { length, onBegin, signal }),
      given,
      'no',
    );
    return [];
  };
}

const neverAborted = new AbortController().signal;

/**
 * @returns mode and group of the tree. On a machine without the group of the host, such as that of a publisher, the tree is
 *   readable for all, so that the checks can read it
 */
function treeOwnership({ mode, group }: BundleConfig): { readonly mode: number; readonly groupId?: number } {
  if (group === undefined) return { mode };
  const groupId = process.getuid?.() === 0 ? findGroupId(group) : undefined;
  return groupId === undefined ? { mode: mode | 0o044 } : { mode, ...given({ groupId }) };
}

function findGroupId(group: string | number): number | undefined {
  try {
    return resolveGroup(group);
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

/**
 * Chooses the policy path at which a confined command sees the candidate: the configured one on a host, as in a pull, or a
 * private one if this machine has none or this user cannot read it.
 */
function choosePaths(config: AgentConfig, directory: string, durable: DurableFs): HostPaths {
  const paths = hostPaths(config);
  if (isReachable(paths.state) && isReachable(paths.policy)) return paths;
  const [state, policy] = [join(directory, 'state'), join(directory, 'policy')];
  for (const path of [state, policy]) durable.makeDirectory('check.place', path, 0o755);
  return { ...paths, state, policy };
}

function isReachable(path: string): boolean {
  try {
    fs.accessSync(path, fs.constants.R_OK | fs.constants.X_OK);
    return fs.statSync(path).isDirectory();
  } catch {
    return false;
  }
}
