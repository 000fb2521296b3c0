// Makes a host from its configuration: directories, lock, state files, repository client, worker groups.
// The one place where the parts are put together; it performs no cycle.

import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { AgentConfig } from '../../core/config/config.js';
import { configDigest } from '../../core/config/config-digest.js';
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import type { LockHolder } from '../../platform/disk/find-lock-owner.js';
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
import { createSandbox, lookForSandbox } from '../hooks/sandbox.js';
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
import { loadLateParts } from './late-parts.js';
import { prepareHost } from './prepare-host.js';
import { isNewHost } from './rebuild-ledger.js';

export interface LockRequest {
  /** Said to whoever finds the lock held. */
  readonly holder: 'agent' | 'pull' | 'rollback' | 'resume' | 'pause' | 'refusals' | 'verify';
  readonly waitMs: number;
  readonly signal?: AbortSignal;
  /** A person says that the directory was emptied on purpose; left out: one that vanished is refused. */
  readonly newState?: true;
  /** Called once, where another process has the lock and is waited for. */
  readonly onWait?: (holder: LockHolder) => void;
}

/** The lock of a state directory, and what shows that it is still the same directory. */
export interface HeldHost extends ProcessLock {
  readonly stateMark: StateMark;
}

/**
 * Makes the directories and takes the lock of the state directory.
 * @throws WritError STATE_VANISHED, PATH_UNSAFE, PATH_CROSS_DEVICE, LOCK_HELD, DISK_*
 */
export async function lockHost(
  config: AgentConfig,
  options: HostOptions,
  request: LockRequest,
): Promise<HeldHost> {
  const paths = hostPaths(config);
  const durable = createDurableFs(options.observer);
  // Before a directory is made: an empty mount point stays empty.
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
 * Opens everything a cycle needs.
 * @param lock held by the caller; left out for a host that is only read
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
  await openOrClose(host, host.groups);
  return host;
}

/**
 * The same host under another configuration: same places, same state files, other bundles, server and workers.
 * The old host is closed when this succeeds, and open as before when it does not. What was refused is tried again, and who
 * uses more now is pending.
 * @throws WritError CONFIG_INVALID when a place has moved; ROOT_MISSING, TLS_INVALID, LISTEN_FAILED, SOCKET_IN_USE
 */
export async function replaceHost(old: Host, config: AgentConfig, options: HostOptions): Promise<Host> {
  requireSamePlaces(old.config, config);
  await loadLateParts(config);
  const { paths, durable, ledger, refusals, restoreMemory, lock, stateMark } = old;
  // What it has found out holds still.
  const known = {
    ...given({ lock, stateMark }),
    ...(old.config.sandbox === config.sandbox ? { sandbox: old.sandbox } : {}),
  };
  const made = makeHost(config, options, { paths, durable, ledger, refusals, restoreMemory, ...known });
  const groups = withKept(made.groups, { old, config });
  const host = { ...made, groups };
  // Both may listen on the same socket of a group: the old one goes first, and its workers connect again.
  const gone = old.groups.filter((one) => !groups.includes(one));
  await closeGroups(gone);
  try {
    await openOrClose(
      host,
      groups.filter((one) => !old.groups.includes(one)),
    );
  } catch (error) {
    announceCurrent(old);
    await openGroups(gone);
    throw error;
  }
  await old.client.close();
  if (host.sandbox !== old.sandbox) await lookForSandbox(host);
  noteSandbox(host);
  // Another configuration may have repaired what refused. The same one would move the link there and back again.
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
    onLateAnswer: (result) => noteLateAnswer(state, result, currentOf(state)),
  });
  const client = openClient(config, { ...options, ...state });
  const ask: Host['contactServer'] = (server) => askServer(config, server, { clock });
  return { ...state, config, clock, log, client, groups, sandbox, contactServer: ask };
}

/** A group of which nothing has changed goes on as it is: no connection of a worker ends for a reload. */
function withKept(
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

/** Before the sockets open: a worker that connects at once is notified of what it is to use. */
async function openOrClose(host: Host, unopened: readonly WorkerGroup[]): Promise<void> {
  announceCurrent(host);
  try {
    await openGroups(unopened);
  } catch (error) {
    await closeGroups(unopened);
    await host.client.close();
    throw error;
  }
}

/** Says to the drivers what is active; a policy that cannot be read is nothing to use, and said elsewhere. */
export function announceCurrent(host: Host): void {
  const generation = currentOf(host);
  const path = join(host.paths.generations, String(generation));
  announceActive(host.groups, generation === undefined ? undefined : { generation, path });
}

function currentOf({ paths }: Pick<Host, 'paths'>): number | undefined {
  try {
    return readActive(paths)?.number;
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

/** Frees sockets and connections; the lock is the caller's. */
export async function closeHost(host: Host): Promise<void> {
  await closeGroups(host.groups);
  await host.client.close();
}

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
    ...given({ floors: floorPlace(options) }),
  });
  return openRepositoryClient({ source, mirrors, store, clock, limits, transport });
}

/** @returns undefined for a host that is only read: it refreshes nothing */
function floorPlace({
  paths,
  stateMark,
  log,
}: Pick<Host, 'paths' | 'stateMark' | 'log'>): FloorPlace | undefined {
  if (stateMark === undefined) return undefined;
  const onDamaged = (path: string): void =>
    log.warn({ path }, 'the copy of the trust floors is damaged; it is ignored');
  return { path: paths.trustFloors, boot: readBootId(), mark: () => stateMark.read(), onDamaged };
}

/** @throws WritError TLS_INVALID */
export function readCa(path: string): string {
  const verdict = readAuthorityFile(path);
  if (verdict.kind === 'read') return verdict.pem;
  const { why } = verdict;
  throw new WritError('TLS_INVALID', `\`ca\` ${path} cannot be used: ${why}`, {
    facts: { path, why },
    hint: '`ca` is a file with certificates in PEM, as `-----BEGIN CERTIFICATE-----`.',
  });
}

const places = ['state', 'policy', 'run', 'socket', 'metrics', 'events', 'read'] as const;

/**
 * A reload cannot move the lock or the policy from under the workers.
 * @throws WritError CONFIG_INVALID naming the key that needs a restart
 */
function requireSamePlaces(old: AgentConfig, next: AgentConfig): void {
  const moved = places.find((key) => !isDeepStrictEqual(old[key], next[key]));
  if (moved === undefined) return;
  throw new WritError('CONFIG_INVALID', `\`${moved}\` cannot change while the agent runs`, {
    facts: { key: moved, expected: shown(old[moved]), actual: shown(next[moved]) },
    hint: 'Restart the agent.',
  });
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? 'none');
}
