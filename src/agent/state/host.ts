// Everything a cycle needs of its host, made once by the composition root and passed along.
// Owns no behaviour: a test builds one with its own clock, source and observers.
import type { AgentConfig } from '../../core/config/config.js';
import type { Digest } from '../../core/names.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import type { RepositoryClient } from '../../trust/repository-client.js';
import type { Sandbox } from '../hooks/sandbox.js';
import type { WorkerGroup } from '../notify/worker-groups.js';
import type { Ledger } from './ledger.js';
import type { HostPaths } from './paths.js';
import type { Refusal } from './refusal-rules.js';
import type { StateFile } from './state-file.js';

export interface Refusals {
  readonly writ: 1;
  /** Digest of the configuration that they were judged under; absent in files of older versions. */
  readonly config?: Digest;
  readonly refusals: readonly Refusal[];
}

export interface Host {
  readonly config: AgentConfig;
  readonly paths: HostPaths;
  readonly durable: DurableFs;
  readonly clock: Clock;
  readonly log: Logger;
  readonly client: RepositoryClient;
  readonly groups: readonly WorkerGroup[];
  /** For commands that judge policy. */
  readonly sandbox: Sandbox;
  readonly ledger: StateFile<Ledger>;
  readonly refusals: StateFile<Refusals>;
}
