// Converts a valid configuration file to an AgentConfig, with defaults, durations in milliseconds and sizes in bytes. The
// caller has validated the file with schema and rules.
import { given } from '../given.js';
import { durationMs, sizeBytes } from '../names.js';
import {
  type AgentConfig,
  type BundleConfig,
  defaultBake,
  type HookConfig,
  type MirrorConfig,
  type WorkerGroupConfig,
} from './config.js';
import { buildChange, buildLimits, buildProxy, buildReleaseAge, milliseconds } from './config-limits.js';
import { namedDrivers } from './config-rules.js';
import type { ConfigFile, DriverSchema } from './config-schema.js';
import { buildHookSandbox } from './hook-sandbox.js';
import { notNowDuration } from './not-now-keys.js';
import { buildProcess } from './process-rules.js';

type MirrorFile = Exclude<ConfigFile['repository'], readonly unknown[]>;
type BundleFile = ConfigFile['bundles'][number];
type CheckFile = NonNullable<BundleFile['checks']>[number];
type WorkerFile = NonNullable<ConfigFile['workers']>[number];
type HookFile = NonNullable<WorkerFile['load']>;

/** Defaults that a host or a test sets; the others are constants of this file. */
export interface ConfigDefaults {
  readonly root: string;
  readonly state: string;
  readonly run: string;
  readonly hostId: string;
  /** Undefined: `auto`. */
  readonly sandbox?: 'required' | 'auto';
}

/** The default paths of an installed agent. */
export const defaultPlaces: Omit<ConfigDefaults, 'hostId' | 'sandbox'> = {
  root: '/etc/writ/root.json',
  state: '/var/lib/writ',
  run: '/run/writ',
};

const defaultDurations = {
  every: '5m',
  fleet: '5m',
  check: '10s',
  canary: '30s',
  load: '30s',
  reset: '5s',
  probe: '10s',
  grace: '10m',
  refusal: '1h',
  scrub: '1h',
  staleHook: '30s',
  staleAfterOfCron: '1d',
} as const;
const defaultCheckMemory = '256MB';
const defaultMode = '0644';
const defaultScrubRate = '20MB';
const defaultChannel = 'stable';
const defaultKeptGenerations = 3;
/** How many poll intervals make metadata stale, so that one or two failed polls raise no warning. */
const defaultStaleIntervals = 3;

/** @returns the configuration; each key that the file leaves out has the value of `defaults` or a constant */
export function buildConfig(
  file: ConfigFile,
  { drivers, defaults }: { readonly drivers: readonly DriverSchema[]; readonly defaults: ConfigDefaults },
): AgentConfig {
  const state = file.state ?? defaults.state;
  const run = file.run ?? defaults.run;
  return {
    repository: buildRepository(file.repository),
    root: file.root ?? defaults.root,
    state,
    policy: file.policy ?? `${state}/policy`,
    run,
    socket: file.socket ?? `${run}/agent.sock`,
    host: { id: file.host?.id ?? defaults.hostId, labels: file.host?.labels ?? {} },
    poll: buildPoll(file.poll),
    bundles: file.bundles.map(buildBundle),
    together: file.together ?? [],
    workers: (file.workers ?? []).map((worker) => buildWorker(worker, drivers)),
    sandbox: file.sandbox ?? defaults.sandbox ?? 'auto',
    keep: {
      generations: file.keep?.generations ?? defaultKeptGenerations,
      graceMs: durationMs(file.keep?.grace ?? defaultDurations.grace),
    },
    refusals: { retryMs: durationMs(file.refusals?.retry ?? defaultDurations.refusal) },
    scrub: buildScrub(file.scrub),
    freshness: buildFreshness(file),
    untrusted: file.untrusted ?? 'keep',
    ...buildReporting(file),
    ...buildLimits(file.limits),
  };
}

function buildRepository(repository: ConfigFile['repository']): AgentConfig['repository'] {
  const mirrors = Array.isArray(repository) ? repository : [repository];
  return mirrors.map(buildMirror) as [MirrorConfig, ...MirrorConfig[]];
}

function buildMirror(mirror: MirrorFile): MirrorConfig {
  if (typeof mirror === 'string') return { url: mirror, redirects: [] };
  const { url, ca, redirects = [] } = mirror;
  return { url, redirects, ...given({ ca }) };
}

function buildPoll({
  every = defaultDurations.every,
  cron,
  timeZone,
}: ConfigFile['poll'] = {}): AgentConfig['poll'] {
  if (cron === undefined) return { kind: 'every', everyMs: durationMs(every) };
  return { kind: 'cron', expression: cron, ...given({ timeZone }) };
}

function buildScrub(scrub: ConfigFile['scrub'] = {}): AgentConfig['scrub'] {
  const { every = defaultDurations.scrub, repair = true, rate = defaultScrubRate } = scrub;
  return {
    ...(every === 'off' ? {} : { everyMs: durationMs(every) }),
    repair: repair ? 'yes' : 'no',
    bytesPerSecond: sizeBytes(rate),
  };
}

function buildMetrics({
  listen,
  socket = '',
}: NonNullable<ConfigFile['metrics']>): NonNullable<AgentConfig['metrics']> {
  if (listen === undefined) return { kind: 'unix', path: socket };
  const colon = listen.lastIndexOf(':');
  const host = listen.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  return { kind: 'tcp', host, port: Number(listen.slice(colon + 1)) };
}

/** Builds the parts of the configuration for reporting, and the proxy. */
function buildReporting({
  metrics,
  events,
  read,
  fleet,
  proxy,
}: ConfigFile): Pick<AgentConfig, 'metrics' | 'events' | 'read' | 'fleet' | 'proxy'> {
  return given({
    proxy: buildProxy(proxy),
    metrics: metrics && buildMetrics(metrics),
    events,
    fleet: fleet && buildFleet(fleet),
    read: read && ({ group: read.group, detail: read.detail === true ? 'yes' : 'no' } as const),
  });
}

function buildFleet({
  every = defaultDurations.fleet,
  detail = 'codes',
  ca,
  ephemeral,
  replaces,
  ...fleet
}: NonNullable<ConfigFile['fleet']>): NonNullable<AgentConfig['fleet']> {
  const stay = ephemeral === true ? 'ephemeral' : 'lasting';
  const claim = replaces === true ? 'replaces' : 'new';
  return { ...fleet, everyMs: durationMs(every), detail, stay, claim, ...given({ ca }) };
}

function buildFreshness({
  staleAfter,
  maxStale,
  onStale,
  onFresh,
  release,
  poll,
}: ConfigFile): AgentConfig['freshness'] {
  const staleAfterMs = milliseconds(staleAfter) ?? defaultStaleAfter(poll);
  return {
    staleAfterMs,
    release: buildReleaseAge(release, staleAfterMs),
    ...given({
      maxStaleMs: milliseconds(maxStale),
      onStale: onStale && buildHook(onStale, defaultDurations.staleHook),
      onFresh: onFresh && buildHook(onFresh, defaultDurations.staleHook),
    }),
  };
}

/** In milliseconds. A cron expression has a constant, because its interval may vary. */
function defaultStaleAfter(poll: ConfigFile['poll']): number {
  const built = buildPoll(poll);
  return built.kind === 'cron'
    ? durationMs(defaultDurations.staleAfterOfCron)
    : defaultStaleIntervals * built.everyMs;
}

function buildBundle({ name, channel, checks = [], mode, group, bake = {} }: BundleFile): BundleConfig {
  return {
    name,
    channel: channel ?? defaultChannel,
    checks: checks.map(buildCheck),
    mode: Number.parseInt(mode ?? defaultMode, 8),
    bake: {
      forMs: bake.for === 0 ? 0 : (milliseconds(bake.for) ?? defaultBake.forMs),
      restarts: bake.restarts ?? defaultBake.restarts,
      ...given({ contact: bake.contact === 'none' ? undefined : bake.contact }),
    },
    ...given({ group }),
  };
}

function buildCheck(check: CheckFile): BundleConfig['checks'][number] {
  const { name, run, parse = [], schema, timeout = defaultDurations.check } = check;
  if (run !== undefined) return { kind: 'run', name, ...buildPolicyCommand({ ...check, run }, timeout) };
  if (check.change !== undefined) return { kind: 'change', name, ...buildChange(check.change) };
  return {
    kind: 'parse',
    name,
    files: parse,
    timeoutMs: durationMs(timeout),
    maxMemoryBytes: sizeBytes(check.memory ?? defaultCheckMemory),
    ...given({ schema }),
  };
}

function buildWorker(worker: WorkerFile, drivers: readonly DriverSchema[]): WorkerGroupConfig {
  const { name, uses, when, confirm, canary, load, reset, probe, rolling, onDead } = worker;
  return {
    name,
    uses,
    ...buildWhen(when),
    confirm: confirm === undefined || confirm === 'optional' ? 'warn' : confirm,
    ...given({
      settleMs: milliseconds(worker.settle),
      minIntervalMs: milliseconds(worker.minInterval),
      rolling,
      onDead,
      canary: canary && buildCanary(canary),
      load: load && buildPolicyCommand(load, defaultDurations.load),
      reset: reset && buildReset(reset, drivers),
      process: worker.process && buildProcess(worker.process),
      probe: probe && {
        ...buildPolicyCommand(probe, defaultDurations.probe),
        ...given({
          deadlineMs: milliseconds(probe.deadline),
          gapMs: milliseconds(probe.gap),
          everyMs: milliseconds(probe.every),
        }),
      },
    }),
  };
}

/** Without globs for resets, each change without a restart causes a reset. */
function buildWhen(when: WorkerFile['when'] = []): Pick<WorkerGroupConfig, 'when' | 'restartWhen'> {
  if (!('restart' in when || 'reset' in when)) return { when: Array.isArray(when) ? when : [] };
  const { reset = [], restart } = when;
  return { when: reset, ...given({ restartWhen: restart }) };
}

function buildReset(
  reset: NonNullable<WorkerFile['reset']>,
  drivers: readonly DriverSchema[],
): NonNullable<WorkerGroupConfig['reset']> {
  return {
    driver: namedDrivers(reset, drivers)[0]?.name ?? '',
    options: reset,
    timeoutMs: durationMs(reset.timeout ?? defaultDurations.reset),
    min: reset.min ?? 1,
    notNowForMs: durationMs(notNowDuration(reset['notNow'])),
    ...given({ retry: reset.retry, deadlineMs: milliseconds(reset.deadline) }),
  };
}

function buildCanary({
  run,
  start,
  probe,
  ...file
}: NonNullable<WorkerFile['canary']>): NonNullable<WorkerGroupConfig['canary']> {
  const hook = (command: HookFile['run']): HookConfig =>
    buildPolicyCommand({ ...file, run: command }, defaultDurations.canary);
  // Schema and rules permit either `run`, or `start` with `probe`.
  if (run !== undefined || start === undefined || probe === undefined)
    return { kind: 'run', hook: hook(run ?? ['false']) };
  const started = hook(start);
  return { kind: 'start', start: started, probe: hook(probe), timeoutMs: started.timeoutMs };
}

function buildHook({ run, timeout }: Pick<HookFile, 'run' | 'timeout'>, defaultTimeout: string): HookConfig {
  return { run, timeoutMs: durationMs(timeout ?? defaultTimeout) };
}

/** A command with a verdict on policy. */
function buildPolicyCommand(hook: HookFile, defaultTimeout: string): HookConfig {
  const { reject, retry, sandbox, unreachable, notNow, pidFile } = hook;
  return {
    ...buildHook(hook, defaultTimeout),
    box: buildHookSandbox(hook),
    ...given({ sandbox, reject, retry, unreachable, notNow, pidFile }),
  };
}
