// The longest time that a step of a job may take if every operation takes until its deadline; a job without progress for longer hangs.
// Pure. The sums are generous, because an agent that is killed during correct work would have to recover.
import type {
  AgentConfig,
  BundleConfig,
  CanaryConfig,
  HookConfig,
  WorkerGroupConfig,
} from '../../core/config/config.js';
import { type Step, steps } from '../../core/cycle/sync-machine.js';
import {
  defaultProbeDeadlineMs,
  maxRedirects,
  maxResumptions,
  type TransportLimits,
} from '../../core/limits.js';
import { maxVisitedRoles } from '../../core/tuf/target-search.js';

const slackMs = 600_000;
/** Workers of a group that are notified one after another. */
const maxInTurn = 256;

/**
 * @param step the last reported step; a transfer reports each piece that arrives. `none`: a job without steps, such as a recovery or
 *   a scan
 * @returns milliseconds without progress after which the job counts as hanging
 */
export function longestSilenceMs(step: Step | 'restore' | 'none', config: AgentConfig): number {
  return slackMs + boundOf(step, config);
}

/** @returns milliseconds that no cycle exceeds between its refresh and its swap, when everything takes until its deadline */
export function longestCycleMs(config: AgentConfig): number {
  const { repository, transport, bundles } = config;
  const transfersMs = bundles.length * repository.length * (1 + maxResumptions) * transport.archiveTimeoutMs;
  const beforeSwap = steps.slice(0, steps.indexOf('swap'));
  return transfersMs + sum(beforeSwap.map((step) => longestSilenceMs(step, config)));
}

function boundOf(step: Step | 'restore' | 'none', config: AgentConfig): number {
  const checksMs = sum(config.bundles.flatMap(({ checks }) => checks.map(checkMs)));
  const workersMs = sum(config.workers.map(groupMs));
  switch (step) {
    case 'refresh':
      return refreshMs(config);
    case 'select':
      return rolesMs(config);
    // A repair refreshes the metadata in this step.
    case 'fetch':
      return refreshMs(config) + fetchMs(config);
    // The next step works before its first progress event, so its time counts too.
    case 'stage':
    case 'verify':
    case 'check':
    case 'canary':
    case 'flush':
      return checksMs + workersMs;
    case 'swap':
    case 'load':
    case 'reset':
    case 'probe':
    case 'restore':
    case 'commit':
      return 2 * workersMs + downloadMs(config);
    case 'none':
      return downloadMs(config) + checksMs + 2 * workersMs + staleMs(config);
  }
}

function downloadMs(config: AgentConfig): number {
  return refreshMs(config) + rolesMs(config) + fetchMs(config);
}

function refreshMs({ repository, transport }: AgentConfig): number {
  return repository.length * transport.refreshTimeoutMs;
}

/** The search for each bundle may download delegated roles. */
function rolesMs({ repository, transport, bundles }: AgentConfig): number {
  const { metadataTimeoutMs, refreshTimeoutMs } = transport;
  const searchMs = Math.min(maxVisitedRoles * metadataTimeoutMs, refreshTimeoutMs);
  return bundles.length * repository.length * searchMs;
}

/** Every bundle from every mirror, without a byte from any of them. */
function fetchMs({ repository, transport, bundles }: AgentConfig): number {
  return bundles.length * repository.length * stallMs(transport);
}

/** The longest time that one mirror can delay a transfer without sending a byte, by the timeouts of all attempts. */
function stallMs({ connectTimeoutMs, idleTimeoutMs, archiveTimeoutMs }: TransportLimits): number {
  // For the response header, and for the body of a redirect.
  const answerMs = (1 + maxRedirects) * (connectTimeoutMs + 2 * idleTimeoutMs);
  return (1 + maxResumptions) * Math.min(answerMs + idleTimeoutMs, archiveTimeoutMs);
}

/** The commands `onStale` and `onFresh`, of which one job runs only one. */
function staleMs({ freshness: { onStale, onFresh } }: AgentConfig): number {
  return Math.max(...[onStale, onFresh].map((hook) => (hook === undefined ? 0 : triesMs(hook))));
}

function canaryMs(canary: CanaryConfig | undefined): number {
  if (canary === undefined) return 0;
  if (canary.kind === 'run') return triesMs(canary.hook);
  const { start, probe, timeoutMs } = canary;
  return (1 + (start.retry ?? 0)) * (start.timeoutMs + timeoutMs + probe.timeoutMs);
}

function groupMs(group: WorkerGroupConfig): number {
  const { canary, load, reset, probe } = group;
  // The attempts of the notification, and one restart during a restore if the worker died of it.
  const notifyMs = reset === undefined ? 0 : reset.timeoutMs * ((reset.retry ?? 0) + 2);
  const probeMs = probe === undefined ? 0 : probe.timeoutMs;
  const loadMs = load === undefined ? 0 : triesMs(load);
  return canaryMs(canary) + loadMs + waitedMs(group) + maxInTurn * (notifyMs + probeMs);
}

/** All workers share one deadline, except in a rolling notification. Each is probed once before and once after it. */
function waitedMs({ probe, rolling }: Pick<WorkerGroupConfig, 'probe' | 'rolling'>): number {
  if (probe === undefined) return 0;
  const steps = rolling === undefined ? 1 : maxInTurn;
  return steps * (probe.deadlineMs ?? defaultProbeDeadlineMs) + maxInTurn * probe.timeoutMs;
}

function checkMs(check: BundleConfig['checks'][number]): number {
  // A check of the change compares two lists without waiting.
  if (check.kind === 'change') return 0;
  return check.kind === 'run' ? triesMs(check) : check.timeoutMs;
}

function triesMs({ timeoutMs, retry = 0 }: HookConfig): number {
  return timeoutMs * (retry + 1);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((one, other) => one + other, 0);
}
