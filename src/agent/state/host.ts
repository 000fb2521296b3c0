// Everything a cycle needs of its host, made once by the composition root and passed along.
// Owns no behaviour: a test builds one with its own clock, source and observers.
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
import type { Refusal } from './refusal-rules.js';
import type { StateFile } from './state-file.js';

export interface Refusals {
  readonly writ: 1;
  /** Digest of the configuration that they were judged under; absent in files of older versions. */
  readonly config?: Digest;
  readonly refusals: readonly Refusal[];
}

/** A way back of which the disk does not know everything. */
export interface UnrecordedRestore {
  /** With the refusal where only it knows that. */
  readonly journal: Journal;
  /** Why the generation was left; absent where a start does not know it. */
  readonly refusal?: WritError;
  /** The error of the disk. */
  readonly disk: WritError;
}

export interface WayBackMemory {
  restore?: UnrecordedRestore | undefined;
  /** The generation whose commit the disk could not take: the ledger has it in memory, and its journal is on the disk. */
  uncommitted?: number | undefined;
  /** Why there is no reserve. */
  noReserve?: WritError | undefined;
  /** By the monotonic clock: when it is made again. */
  reserveNotBeforeMs?: number;
  /** Lines of the history that could not be written, oldest first. */
  readonly entries: HistoryEntry[];
}

/** Whether the state directory is the one that this process opened, with the mark that this boot knows. */
export interface StateMark {
  /** @returns STATE_VANISHED while it is not; writes nothing */
  findVanished(): WritError | undefined;
  /** @returns the mark; undefined where the disk has not taken one */
  read(): string | undefined;
  /** Compares device and inode, and whether an emptied directory lost its mark. @throws WritError STATE_VANISHED */
  requireOpened(): void;
  /** As findVanished; a mark that is missing is written again, where the disk takes it. */
  renew(): WritError | undefined;
}

export interface Host {
  readonly config: AgentConfig;
  readonly paths: HostPaths;
  /** Of the state directory; left out where nothing moves: a host that is only read. */
  readonly lock?: Pick<ProcessLock, 'isInPlace'>;
  /** Left out for a host that is only read. */
  readonly stateMark?: StateMark;
  readonly durable: DurableFs;
  readonly clock: Clock;
  readonly log: Logger;
  readonly client: RepositoryClient;
  readonly groups: readonly WorkerGroup[];
  /** For commands that judge policy. */
  readonly sandbox: Sandbox;
  readonly ledger: StateFile<Ledger>;
  readonly refusals: StateFile<Refusals>;
  /** Asks a server once, on a connection of its own; @returns why it was not reached; undefined where it answered. */
  readonly askServer: (server: ContactServer) => Promise<string | undefined>;
  readonly wayBack: WayBackMemory;
  /** What releases may require of it; left out: what this version of Writ knows. */
  readonly features?: readonly string[];
}

export interface Sandbox {
  /** As of the last look. */
  status(): SandboxStatus;
  /**
   * Looks, unless it was found before.
   * @returns undefined where commands run as they are: `off`, or `auto` without one
   * @throws WritError SANDBOX_MISSING, SANDBOX_BROKEN where one is required, and where one was there before
   */
  open(): Promise<Means | undefined>;
  /** What was found may hold no more: a run could not be set up. */
  forget(): void;
  /** Tries what was found before, and looks again only where that fails. @throws WritError as `open` */
  retry(): Promise<void>;
}

export interface WorkerGroup {
  readonly config: WorkerGroupConfig;
  /** Absent for a group that nobody judges. */
  readonly driver?: Driver;
  /** Of a group without `reset`: notified when its loader has taken a generation in. */
  readonly noteLoaded?: (generation: number | undefined) => void;
}

export interface HostOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Of Writ: said to servers and on sockets. */
  readonly version: string;
  /** A test's way in to fail or kill at a labelled file operation. */
  readonly observer?: OperationObserver;
}

/** What a sandbox is built with on this host. */
export interface Means {
  readonly programs: BoxPrograms;
  /** Whether a user namespace can be had. */
  readonly userNamespace: 'yes' | 'no';
  /** What refuses system calls, for bubblewrap; left out where kernel or machine cannot have it. */
  readonly systemCalls?: SystemCallFilters;
  readonly isRoot: boolean;
  /** Our own: no command is given more. */
  readonly limits: ProcessLimits;
  /** Left out where none are delegated to us: each process is bounded by itself then. */
  readonly groups?: ControlGroups;
}
