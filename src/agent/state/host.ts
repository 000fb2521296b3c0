// The dependencies of a cycle: configuration, paths, state files, clock, clients. The composition root creates a host once
// and passes it on. A test creates one with its own clock, source and observers. Types only.
import type { AgentConfig, ContactServer, WorkerGroupConfig } from '../../core/config/config.js';
import type { WritError } from '../../core/errors.js';
import type { Digest } from '../../core/names.js';
import type { HistoryEntry } from '../../core/protocol/control-protocol.js';
import type { SandboxStatus } from '../../core/status/status.js';
import type { DurableFs, OperationObserver } from '../../platform/disk/durable-fs.js';
import type { ProcessLock } from '../../platform/disk/process-lock.js';
import type { BoxPrograms } from '../../platform/process/bubblewrap.js';
import type { ControlGroups } from '../../platform/process/control-group.js';
import type { ProcessLimits } from '../../platform/process/process-limits.js';
import type { SystemCallFilters } from '../../platform/process/system-call-filter.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import type { RepositoryClient } from '../../trust/repository-client.js';
import type { Driver } from '../../workers/contract/driver.js';
import type { Ledger } from './ledger.js';
import type { HostPaths } from './paths.js';
import type { Journal } from './recovery-rules.js';
import type { RefusalEntry } from './refusal-rules.js';
import type { StateFile } from './state-file.js';

/** The content of rejected.json. */
export interface RefusalsDocument {
  readonly writ: 1;
  /** Digest of the configuration when the last refusal was recorded; absent in files of older versions. */
  readonly config?: Digest;
  readonly refusals: readonly RefusalEntry[];
}

/** A restore that is not completely recorded on the disk. */
export interface UnrecordedRestore {
  /** Contains the refusal if rejected.json could not take it. */
  readonly journal: Journal;
  /** Why the host left the generation; undefined if a start repeats the restore and does not know the reason. */
  readonly refusal?: WritError;
  /** The first error of the disk. */
  readonly diskError: WritError;
}

/** What could not be written to the disk; it stays in memory until the disk accepts it. */
export interface RestoreMemory {
  unrecorded?: UnrecordedRestore | undefined;
  /** The generation of a commit that could not be written: only the ledger in memory has it, and its journal is still on disk. */
  uncommitted?: number | undefined;
  /** Why the reserve file does not exist; undefined if it exists. */
  reserveError?: WritError | undefined;
  /** Milliseconds of the monotonic clock: the earliest time to create the reserve file again. */
  reserveNotBeforeMs?: number;
  /** Entries of the history that could not be written, oldest first. */
  readonly entries: HistoryEntry[];
}

/** Checks that the state directory is the one that this process opened, with the state mark that this boot recorded. */
export interface StateMark {
  /** @returns STATE_VANISHED if it is another directory or has lost its mark; undefined if it is the same. Writes nothing */
  findVanished(): WritError | undefined;
  /** @returns the mark; undefined if none could be written */
  read(): string | undefined;
  /** Compares device and inode, and detects an emptied directory by its missing mark. @throws WritError STATE_VANISHED */
  requireOpened(): void;
  /** As findVanished, and writes a missing mark again if the disk accepts it. */
  renew(): WritError | undefined;
}

export interface Host {
  readonly config: AgentConfig;
  readonly paths: HostPaths;
  /** The lock of the state directory; undefined for a host that is only read. */
  readonly lock?: Pick<ProcessLock, 'isInPlace'>;
  /** Undefined for a host that is only read. */
  readonly stateMark?: StateMark;
  readonly durable: DurableFs;
  readonly clock: Clock;
  readonly log: Logger;
  readonly client: RepositoryClient;
  readonly groups: readonly WorkerGroup[];
  /** Confines the commands that judge policy. */
  readonly sandbox: Sandbox;
  readonly ledger: StateFile<Ledger>;
  readonly refusals: StateFile<RefusalsDocument>;
  /** Sends one request to a server on a new connection. @returns why the server was not reached; undefined if it answered */
  readonly contactServer: (server: ContactServer) => Promise<string | undefined>;
  readonly restoreMemory: RestoreMemory;
  /** The keys of the workers that this process has observed with this configuration. */
  readonly observedWorkers: Set<string>;
  /** The features that releases may require; undefined: those of this version of Writ. */
  readonly features?: readonly string[];
}

export interface Sandbox {
  /** As of the last detection. */
  status(): SandboxStatus;
  /**
   * Detects the sandbox, unless an earlier call found one.
   * @returns undefined if commands run unconfined: mode `off`, or mode `auto` on a host that has no sandbox
   * @throws WritError SANDBOX_MISSING, SANDBOX_BROKEN if a sandbox is required, or if this host had one before
   */
  open(): Promise<SandboxCapabilities | undefined>;
  /** Discards the detected sandbox, because it failed to start a command. The next `open` detects it again. */
  forget(): void;
  /** Tests the detected sandbox, and detects again only if the test fails. @throws WritError as `open` */
  retry(): Promise<void>;
}

export interface WorkerGroup {
  readonly config: WorkerGroupConfig;
  /** Absent in a group without `reset`, `load` and `probe`: nothing judges its workers. */
  readonly driver?: Driver;
  /** In a group without `reset`: called with the generation that its loader loaded; undefined while the loader runs. */
  readonly noteLoaded?: (generation: number | undefined) => void;
}

export interface HostOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** The version of Writ, which servers and clients of the sockets receive. */
  readonly version: string;
  /** A test uses it to fail or to kill the process at a labelled operation. */
  readonly observer?: OperationObserver;
}

/** What this host offers for confining a command. */
export interface SandboxCapabilities {
  readonly programs: BoxPrograms;
  /** Whether the host permits user namespaces. */
  readonly userNamespace: 'yes' | 'no';
  /** Filters of system calls for bubblewrap; undefined if the kernel or the machine does not support them. */
  readonly systemCalls?: SystemCallFilters;
  readonly isRoot: boolean;
  /** The limits of this process: no command gets more. */
  readonly limits: ProcessLimits;
  /** Undefined if no control group is delegated to Writ: then each process has its own bounds. */
  readonly groups?: ControlGroups;
}
