// What commands need of the agent's own code, each part imported when it is called and not before: `writ status`
// must not load a TUF client. The only place in cli that names modules of the agent's run time.
import type { DiffPolicyOptions, PolicyDifference } from '../../agent/control/diff-policy.js';
import type { CycleEventLine, CycleResult } from '../../core/cycle/cycle-report.js';
import type { WritError } from '../../core/errors.js';
import type {
  HistoryEntry,
  PauseResult,
  ResumeResult,
  StatusReport,
} from '../../core/protocol/control-protocol.js';
import type { DoctorFinding } from '../../core/status/doctor.js';
import type { VerifyResult } from '../../core/status/verify-report.js';
import type { LogLevel } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';

export interface RunAgentOptions {
  readonly configPath: string;
  readonly logLevel: LogLevel;
  readonly version: string;
  /** Aborted by SIGINT and SIGTERM: end cleanly. */
  readonly signal: AbortSignal;
}

/** A job done without a running agent, under the same lock. */
export interface AloneOptions {
  readonly configPath: string;
  readonly by: string;
  readonly version: string;
  readonly signal: AbortSignal;
  readonly onEvent: (event: CycleEventLine) => void;
}

export interface AgentDoors {
  /** @returns the exit code. @throws WritError for what keeps it from starting */
  runAgent(options: RunAgentOptions): Promise<number>;
  /** @throws WritError for what keeps it from starting, as LOCK_HELD or CONFIG_INVALID */
  pullAlone(options: AloneOptions & { readonly force: boolean }): Promise<CycleResult>;
  rollbackAlone(
    options: AloneOptions & {
      readonly generation?: number;
      readonly reason?: string;
      readonly force?: boolean;
    },
  ): Promise<CycleResult>;
  resumeAlone(options: Omit<AloneOptions, 'onEvent'>): Promise<ResumeResult>;
  pauseAlone(
    options: Omit<AloneOptions, 'onEvent'> & { readonly reason: string; readonly untilMs?: number },
  ): Promise<PauseResult>;
  /** What generations, or the server's releases, differ in; changes nothing of the host. */
  diffPolicy(options: DiffPolicyOptions): Promise<PolicyDifference>;
  verifyAlone(options: AloneOptions & { readonly repair: boolean }): Promise<VerifyResult>;
  /** Each thing that a host needs, and how it is; never rejects. */
  runDoctor(options: DoctorOptions): Promise<readonly DoctorFinding[]>;
  /** What the files of a host say when no agent runs; loads no network and no schema code. */
  readOfflineStatus(options: OfflineOptions): Promise<StatusReport>;
  /** Newest first. */
  readOfflineHistory(
    options: OfflineOptions & { readonly limit: number; readonly cycle?: string },
  ): Promise<readonly HistoryEntry[]>;
}

export interface DoctorOptions {
  readonly configPath: string;
  readonly version: string;
  readonly clock: Clock;
  readonly status: StatusReport | WritError;
}

export interface OfflineOptions {
  readonly configPath: string;
  readonly version: string;
  readonly nowMs: number;
}

/** Until the agent's run time is part of this program every door says so. */
export const agentDoors: AgentDoors = {
  runAgent: async (options) => (await import('../../agent/agent.js')).runAgent(options),
  pullAlone: async (options) => (await import('../../agent/control/without-agent.js')).pullAlone(options),
  rollbackAlone: async (options) =>
    (await import('../../agent/control/without-agent.js')).rollbackAlone(options),
  pauseAlone: async (options) => (await import('../../agent/control/without-agent.js')).pauseAlone(options),
  resumeAlone: async (options) => (await import('../../agent/control/without-agent.js')).resumeAlone(options),
  diffPolicy: async (options) => (await import('../../agent/control/diff-policy.js')).diffPolicy(options),
  verifyAlone: async (options) => (await import('../../agent/control/without-agent.js')).verifyAlone(options),
  runDoctor: async (options) => (await import('../../agent/doctor/doctor.js')).runDoctor(options),
  readOfflineStatus: async (options) =>
    (await import('../../agent/control/from-disk.js')).readOfflineStatus(options),
  readOfflineHistory: async (options) =>
    (await import('../../agent/control/from-disk.js')).readOfflineHistory(options),
};
