// Creates a host from its configuration: directories, lock, state files, repository client, worker groups.
// Only this file assembles these parts. It performs no cycle.

import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { AgentConfig } from '../../core/config/config.js';
import { configDigest } from '../../core/config/config-digest.js';
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import type { LockHolder } from '../../platform/disk/find-lock-holder.js';
import { type ProcessLock, takeLock } from '../../platform/disk/process-lock.js';
import { readAuthorityFile } from '../../platform/net/authorities.js';
import { createProxies } from '../../platform/net/proxies.js';
import { readBootId } from '../../platform/process/boot-id.js';
import { openRepositoryClient } from '../../trust/repository-client.js';
import { openRepositorySource } from '../../trust/sources/repository-source.js';
import type { FloorPlace } from '../../trust/store/trust-floors.js';
import { openTrustStore } from '../../trust/store/trust-store.js';
import { driverKinds } from '../../workers/registry.js';
import { askServer } from '../contact/ask-server.js';
import { readActive } from '../generations/generations.js';
import { createSandbox, trySandbox } from '../hooks/sandbox.js';
import { noteSandbox } from '../hooks/watch-sandbox.js';
import { noteNewlyAffected } from '../notify/membership.js';
import {
  announceActive,
  closeGroups,
  createWorkerGroups,
  isChecked,
  openGroups,
} from '../notify/worker-groups.js';
import { noteLateAnswer } from '../notify/worker-ledger.js';
import { endFailedWaits } from '../select/waits.js';
import type { Host, HostOptions, StateMark, WorkerGroup } from '../state/host.js';
import { requireKnownJournalFormat } from '../state/journal.js';
import { openLedger } from '../state/ledger-file.js';
import { hostPaths } from '../state/paths.js';
import { retryRefusals } from '../state/refusals.js';
import { openRefusals } from '../state/refusals-file.js';
import { createRestoreMemory } from '../state/restore-memory.js';
import { acceptNewState, findVanished, openStateMark, withStateGuard } from '../state-mark/state-mark.js';
import { loadLazyModules } from './lazy-modules.js';
import { prepareHost } from './prepare-host.js';
import { isNewHost } from './rebuild-ledger.js';

export interface LockRequest {
  /** The command that takes the lock, for the message to other processes that find it held. */
  readonly holder: 'agent' | 'pull' | 'rollback' | 'resume' | 'pause' | 'refusals' | 'verify';
  readonly waitMs: number;
  readonly signal?: AbortSignal;
  /** The operator confirms that the state directory was emptied on purpose. Omitted: a vanished state is refused. */
  readonly newState?: true;
  /** Called once if another process holds the lock and this one waits for it. */
  readonly onWait?: (holder: LockHolder) => void;
}

/** The lock of a state directory, with the state mark that identifies the directory. */
export interface HeldHost extends ProcessLock {
  readonly stateMark: StateMark;
}

/**
 * Creates the directories and takes the lock of the state directory.
 * @throws WritError STATE_VANISHED, PATH_UNSAFE, PATH_CROSS_DEVICE, LOCK_HELD, DISK_*
 */
export async function lockHost(
  config: AgentConfig,
  options: HostOptions,
  request: LockRequest,
): Promise<HeldHost> {
  const paths = hostPaths(config);
  const durable = createDurableFs(options.observer);
  // Before any directory is created, so that an empty mount point stays empty.
  const vanished = findVanished(paths);
  const isAccepted = request.newState === true && vanished?.facts['because'] !== 'absent';
  if (vanished !== undefined && !isAccepted) throw vanished;
  prepareHost(paths, durable);
  const { clock } = options;
  const lock = await takeLock({ ...request, path: paths.lock, durable, clock, code: 'LOCK_HELD' });
  try {
    if (vanished !== undefined) acceptNewState(paths, durable);
    return { ...lock, stateMark: openStateMark(paths, durable) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * Opens the state files, the repository client and the worker groups that a cycle needs.
 * @param lock held by the caller; omitted for a host that is only read
 * @throws WritError ROOT_MISSING, STATE_DAMAGED, STATE_TOO_NEW, CONFIG_INVALID, LISTEN_FAILED, SOCKET_IN_USE
 */
export async function openHost(
  config: AgentConfig,
  options: HostOptions,
  lock?: NonNullable<Host['lock']> & Partial<Pick<HeldHost, 'stateMark'>>,
): Promise<Host> {
  const paths = hostPaths(config);
  const stateMark = lock?.stateMark;
  const { observer } = options;
  const durable = createDurableFs(stateMark ? withStateGuard(paths, stateMark, observer) : observer);
  const ledger = openLedger(paths.ledger, durable, () => isNewHost(paths));
  const refusals = openRefusals(paths.rejected, durable);
  requireKnownJournalFormat(paths);
  const restoreMemory = createRestoreMemory();
  const host = makeHost(config, options, {
    ...{ paths, durable, ledger, refusals, restoreMemory },
    ...given({ lock, stateMark }),
  });
  await openGroupsOrClose(host, host.groups);
  return host;
}

/**
 * Opens the same host with another configuration: same paths and state files, other bundles, server and workers.
 * On success the old host is closed; on an error it stays open. If the configuration differs, refused releases are tried
 * again. A worker that uses a bundle for the first time is pending.
 * @throws WritError CONFIG_INVALID when a path differs; ROOT_MISSING, TLS_INVALID, LISTEN_FAILED, SOCKET_IN_USE
 */
export async function replaceHost(old: Host, config: AgentConfig, options: HostOptions): Promise<Host> {
  requireSamePaths(old.config, config);
  await loadLazyModules(config);
  const { paths, durable, ledger, refusals, restoreMemory, lock, stateMark } = old;
  // The sandbox was probed already and stays valid with the same setting.
  const known = {
    ...given({ lock, stateMark }),
    ...(old.config.sandbox === config.sandbox ? { sandbox: old.sandbox } : {}),
  };
  const made = makeHost(config, options, { paths, durable, ledger, refusals, restoreMemory, ...known });
  const groups = keepUnchangedGroups(made.groups, { old, config });
  const host = { ...made, groups };
  // The old and the new group may use the same socket path, so the old one closes first. Its workers reconnect.
  const gone = old.groups.filter((one) => !groups.includes(one));
  await closeGroups(gone);
  try {
    await openGroupsOrClose(
      host,
      groups.filter((one) => !old.groups.includes(one)),
    );
  } catch (error) {
    announceActiveGeneration(old);
    await openGroups(gone);
    throw error;
  }
  await old.client.close();
  if (host.sandbox !== old.sandbox) await trySandbox(host);
  noteSandbox(host);
  // A changed configuration may remove the cause of a refusal. With the same one a retry would only swap and restore.
  if (configDigest(old.config) !== configDigest(config)) {
    retryRefusals(host);
    endFailedWaits(host);
  }
  noteNewlyAffected(host);
  return host;
}

function makeHost(
  config: AgentConfig,
  options: HostOptions,
  state: Pick<Host, 'paths' | 'durable' | 'ledger' | 'refusals' | 'restoreMemory' | 'lock' | 'stateMark'> &
    Partial<Pick<Host, 'sandbox'>>,
): Host {
  const { clock, log } = options;
  const { sandbox = createSandbox({ mode: config.sandbox, log }) } = state;
  const groups = createWorkerGroups(config, {
    kinds: driverKinds,
    runDirectory: config.run,
    log,
    clock,
    durable: state.durable,
    onLateAnswer: (result) => noteLateAnswer(state, result, readActiveNumber(state)),
  });
  const client = openClient(config, { ...options, ...state });
  const ask: Host['contactServer'] = (server) => askServer(config, server, { clock });
  const made = { config, clock, log, client, groups, sandbox, contactServer: ask };
  return { ...state, ...made, observedWorkers: new Set() };
}

/** Keeps each old group with an unchanged configuration, so that a reload does not end the connections of its workers. */
function keepUnchangedGroups(
  groups: readonly WorkerGroup[],
  { old, config }: { readonly old: Host; readonly config: AgentConfig },
): readonly WorkerGroup[] {
  const of = (one: WorkerGroup, all: AgentConfig) => ({
    config: one.config,
    checked: isChecked(one.config, all),
  });
  return groups.map((one) => {
    const same = old.groups.find((other) => isDeepStrictEqual(of(other, old.config), of(one, config)));
    return same ?? one;
  });
}

/**
 * Opens the groups; on an error closes them and the client. The active generation is announced first, so that a worker that
 * connects at once is notified of it.
 */
async function openGroupsOrClose(host: Host, unopened: readonly WorkerGroup[]): Promise<void> {
  announceActiveGeneration(host);
  try {
    await openGroups(unopened);
  } catch (error) {
    await closeGroups(unopened);
    await host.client.close();
    throw error;
  }
}

/** Announces the active generation to the drivers: undefined if it cannot be read, which the scan reports. */
export function announceActiveGeneration(host: Host): void {
  const generation = readActiveNumber(host);
  const path = join(host.paths.generations, String(generation));
  announceActive(host.groups, generation === undefined ? undefined : { generation, path });
}

function readActiveNumber({ paths }: Pick<Host, 'paths'>): number | undefined {
  try {
    return readActive(paths)?.number;
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

/** Closes the drivers of the worker groups and the repository client. The control socket and the lock stay for the caller. */
export async function closeHost(host: Host): Promise<void> {
  await closeGroups(host.groups);
  await host.client.close();
}

/** Requests nothing before its first use. @throws WritError CONFIG_INVALID for a URL, TLS_INVALID for a `ca` file */
export function openClient(
  config: AgentConfig,
  options: HostOptions & Pick<Host, 'durable' | 'paths' | 'stateMark'>,
): Host['client'] {
  const { clock, version } = options;
  const { transport, metadataLimits: limits } = config;
  const proxies = createProxies(config.proxy);
  const [source, ...mirrors] = config.repository.map((mirror) => {
    const ca = mirror.ca === undefined ? {} : { ca: readCa(mirror.ca) };
    const { url, redirects } = mirror;
    return openRepositorySource(url, { clock, version, limits: transport, redirects, proxies, ...ca });
  });
  if (source === undefined) throw new WritError('CONFIG_INVALID', '`repository` has no URL');
  const store = openTrustStore({
    directory: options.paths.trust,
    bootstrapRoot: config.root,
    fs: options.durable,
    ...given({ floors: createFloorPlace(options) }),
  });
  return openRepositoryClient({ source, mirrors, store, clock, limits, transport });
}

/** @returns undefined for a host that is only read, because it refreshes no metadata */
function createFloorPlace({
  paths,
  stateMark,
  log,
}: Pick<Host, 'paths' | 'stateMark' | 'log'>): FloorPlace | undefined {
  if (stateMark === undefined) return undefined;
  const onDamaged = (path: string): void =>
    log.warn({ path }, 'the copy of the trust floors is damaged; it is ignored');
  return { path: paths.trustFloors, boot: readBootId(), mark: () => stateMark.read(), onDamaged };
}

/**
 * Reads a file of certificate authorities in PEM.
 * @throws WritError TLS_INVALID
 */
export function readCa(path: string): string {
  const verdict = readAuthorityFile(path);
  if (verdict.kind === 'read') return verdict.pem;
  const { why } = verdict;
  throw new WritError('TLS_INVALID', `\`ca\` ${path} cannot be used: ${why}`, {
    facts: { path, why },
    hint: '`ca` is a file with certificates in PEM, as `-----BEGIN CERTIFICATE-----`.',
  });
}

const pathKeys = ['state', 'policy', 'run', 'socket', 'metrics', 'events', 'read'] as const;

/**
 * Requires unchanged paths, because a reload must not move the lock, or the policy that workers read.
 * @throws WritError CONFIG_INVALID naming the key that needs a restart
 */
function requireSamePaths(old: AgentConfig, next: AgentConfig): void {
  const moved = pathKeys.find((key) => !isDeepStrictEqual(old[key], next[key]));
  if (moved === undefined) return;
  throw new WritError('CONFIG_INVALID', `\`${moved}\` cannot change while the agent runs`, {
    facts: { key: moved, expected: formatSetting(old[moved]), actual: formatSetting(next[moved]) },
    hint: 'Restart the agent.',
  });
}

function formatSetting(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? 'none');
}
