// The configuration file as written, and how it becomes an AgentConfig: defaults filled in, durations in
// milliseconds, sizes in bytes. Only called with a file that schema and rules have accepted.

import { durationMs, sizeBytes } from '../names.js';
import type {
  AgentConfig,
  BundleConfig,
  CanaryConfig,
  CheckConfig,
  FreshnessConfig,
  HookConfig,
  MirrorConfig,
  ParseCheckConfig,
  PollConfig,
  ProbeConfig,
  SandboxMode,
  ScrubConfig,
  WorkerGroupConfig,
} from './config.js';
import { buildLimits, type LimitsFile } from './config-limits.js';
import { buildReports, type ReportsFile } from './config-reports.js';
import type { DriverSchema } from './config-schema.js';
import { buildReset, buildWhen, type ResetFile, type WhenFile } from './config-workers.js';
import { buildHookBox, type HookBoxFile } from './hook-box.js';

type Command = readonly [string, ...string[]];

interface HookFile extends HookBoxFile {
  readonly run: Command;
  readonly timeout?: string;
  readonly reject?: string;
  readonly retry?: number;
  readonly sandbox?: 'off';
}

interface CheckFile extends Partial<HookFile> {
  readonly name: string;
  readonly parse?: readonly string[];
  readonly schema?: string;
}

interface BundleFile {
  readonly name: string;
  readonly channel?: string;
  readonly checks?: readonly CheckFile[];
  readonly mode?: string;
  readonly group?: string | number;
}

interface CanaryFile extends Partial<HookFile> {
  readonly start?: Command;
  readonly probe?: Command;
}

interface WorkerFile {
  readonly name: string;
  readonly uses: readonly string[];
  readonly when?: WhenFile;
  readonly rolling?: number;
  readonly onDead?: 'restart' | 'report';
  readonly canary?: CanaryFile;
  readonly load?: HookFile;
  readonly reset?: ResetFile;
  readonly confirm?: 'required' | 'optional';
  readonly settle?: string;
  readonly minInterval?: string;
  readonly probe?: HookFile & { readonly deadline?: string };
}

type MirrorFile =
  | string
  | { readonly url: string; readonly ca?: string; readonly redirects?: readonly string[] };

/** The file after schema and rules. */
export interface ConfigFile extends ReportsFile {
  readonly repository: MirrorFile | readonly MirrorFile[];
  readonly root?: string;
  readonly state?: string;
  readonly policy?: string;
  readonly run?: string;
  readonly socket?: string;
  readonly host?: { readonly id?: string; readonly labels?: Readonly<Record<string, string>> };
  readonly poll?: { readonly every?: string; readonly cron?: string; readonly timeZone?: string };
  readonly bundles: readonly BundleFile[];
  readonly together?: readonly (readonly string[])[];
  readonly workers?: readonly WorkerFile[];
  readonly sandbox?: SandboxMode;
  readonly keep?: { readonly generations?: number; readonly grace?: string };
  readonly refusals?: { readonly retry?: string };
  readonly scrub?: { readonly every?: string; readonly repair?: boolean; readonly rate?: string };
  readonly staleAfter?: string;
  readonly maxStale?: string;
  readonly onStale?: HookFile;
  readonly onFresh?: HookFile;
  readonly untrusted?: 'keep' | 'rollback';
  readonly limits?: LimitsFile;
}

/** Defaults that a host or a test decides on; the others are constants of this file. */
export interface ConfigDefaults {
  readonly root: string;
  readonly state: string;
  readonly run: string;
  readonly hostId: string;
  /** Left out: `auto`. */
  readonly sandbox?: 'required' | 'auto';
}

/** The places of an installed agent; only the host id is still to be found. */
export const defaultPlaces: Omit<ConfigDefaults, 'hostId' | 'sandbox'> = {
  root: '/etc/writ/root.json',
  state: '/var/lib/writ',
  run: '/run/writ',
};

const defaultDurations = {
  every: '5m',
  check: '10s',
  canary: '30s',
  load: '30s',
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
/** A poll or two may fail without a word. */
const defaultStaleIntervals = 3;

interface BuildOptions {
  readonly drivers: readonly DriverSchema[];
  readonly defaults: ConfigDefaults;
}

export function buildConfig(file: ConfigFile, { drivers, defaults }: BuildOptions): AgentConfig {
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
    ...buildReports(file),
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
  return { url, redirects, ...(ca === undefined ? {} : { ca }) };
}

function buildPoll(poll: ConfigFile['poll']): PollConfig {
  if (poll?.cron === undefined) {
    return { kind: 'every', everyMs: durationMs(poll?.every ?? defaultDurations.every) };
  }
  const { cron: expression, timeZone } = poll;
  return { kind: 'cron', expression, ...(timeZone === undefined ? {} : { timeZone }) };
}

function buildScrub(scrub: ConfigFile['scrub']): ScrubConfig {
  const { every = defaultDurations.scrub, repair = true, rate = defaultScrubRate } = scrub ?? {};
  return {
    ...(every === 'off' ? {} : { everyMs: durationMs(every) }),
    repair: repair ? 'yes' : 'no',
    bytesPerSecond: sizeBytes(rate),
  };
}

function buildFreshness(file: ConfigFile): FreshnessConfig {
  const { maxStale, onStale, onFresh } = file;
  return {
    staleAfterMs: file.staleAfter === undefined ? defaultStaleAfter(file.poll) : durationMs(file.staleAfter),
    ...(maxStale === undefined ? {} : { maxStaleMs: durationMs(maxStale) }),
    ...(onStale === undefined ? {} : { onStale: buildHook(onStale, defaultDurations.staleHook) }),
    ...(onFresh === undefined ? {} : { onFresh: buildHook(onFresh, defaultDurations.staleHook) }),
  };
}

/** A cron expression has no one interval. */
function defaultStaleAfter(poll: ConfigFile['poll']): number {
  const built = buildPoll(poll);
  return built.kind === 'cron'
    ? durationMs(defaultDurations.staleAfterOfCron)
    : defaultStaleIntervals * built.everyMs;
}

function buildBundle(bundle: BundleFile): BundleConfig {
  return {
    name: bundle.name,
    channel: bundle.channel ?? defaultChannel,
    checks: (bundle.checks ?? []).map(buildCheck),
    mode: Number.parseInt(bundle.mode ?? defaultMode, 8),
    ...(bundle.group === undefined ? {} : { group: bundle.group }),
  };
}

function buildCheck(check: CheckFile): CheckConfig | ParseCheckConfig {
  const { name, run, parse = [], schema, timeout = defaultDurations.check } = check;
  if (run !== undefined) return { kind: 'run', name, ...buildJudge({ ...check, run }, timeout) };
  return {
    kind: 'parse',
    name,
    files: parse,
    timeoutMs: durationMs(timeout),
    maxMemoryBytes: sizeBytes(check.memory ?? defaultCheckMemory),
    ...(schema === undefined ? {} : { schema }),
  };
}

function buildWorker(worker: WorkerFile, drivers: readonly DriverSchema[]): WorkerGroupConfig {
  const { canary, load, reset, probe, rolling, onDead } = worker;
  return {
    name: worker.name,
    uses: worker.uses,
    ...buildWhen(worker.when),
    confirm: worker.confirm ?? 'optional',
    ...(worker.settle === undefined ? {} : { settleMs: durationMs(worker.settle) }),
    ...(worker.minInterval === undefined ? {} : { minIntervalMs: durationMs(worker.minInterval) }),
    ...(rolling === undefined ? {} : { rolling }),
    ...(onDead === undefined ? {} : { onDead }),
    ...(canary === undefined ? {} : { canary: buildCanary(canary) }),
    ...(load === undefined ? {} : { load: buildJudge(load, defaultDurations.load) }),
    ...(reset === undefined ? {} : { reset: buildReset(reset, drivers) }),
    ...(probe === undefined ? {} : { probe: buildProbe(probe) }),
  };
}

function buildProbe(probe: NonNullable<WorkerFile['probe']>): ProbeConfig {
  const { deadline } = probe;
  return {
    ...buildJudge(probe, defaultDurations.probe),
    ...(deadline === undefined ? {} : { deadlineMs: durationMs(deadline) }),
  };
}

function buildCanary({ run, start, probe, ...file }: CanaryFile): CanaryConfig {
  const hook = (command: Command): HookConfig =>
    buildJudge({ ...file, run: command }, defaultDurations.canary);
  // Schema and rules: either `run`, or `start` with `probe`.
  if (run !== undefined || start === undefined || probe === undefined)
    return { kind: 'run', hook: hook(run ?? ['false']) };
  const started = hook(start);
  return { kind: 'start', start: started, probe: hook(probe), timeoutMs: started.timeoutMs };
}

function buildHook(hook: HookFile, defaultTimeout: string): HookConfig {
  return { run: hook.run, timeoutMs: durationMs(hook.timeout ?? defaultTimeout) };
}

/** A command whose word on a policy counts. */
function buildJudge(hook: HookFile, defaultTimeout: string): HookConfig {
  const { reject, retry, sandbox } = hook;
  return {
    ...buildHook(hook, defaultTimeout),
    box: buildHookBox(hook),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(reject === undefined ? {} : { reject }),
    ...(retry === undefined ? {} : { retry }),
  };
}
