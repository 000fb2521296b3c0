// The configuration of the agent after validation: with defaults, and durations in milliseconds (docs/configuration.md).
// Types only. configDigest depends on names and values of members, so a change of one makes every host retry its refusals.

import { given } from '../given.js';
import type { ArchiveLimits, MetadataLimits, TransportLimits } from '../limits.js';
import type { ProxySetting } from '../proxy-rules.js';
import type { HookSandboxSettings } from './hook-sandbox.js';

/** Which results of a program show that it did not reach its daemon. All present conditions must hold. */
export interface UnreachableConfig {
  readonly exit?: readonly number[];
  /** A regular expression (flags `mu`) for its output. */
  readonly match?: string;
}

/** Which answers of a program or daemon are a deferral. All present conditions must hold. */
export interface NotNowConfig {
  readonly exit?: readonly number[];
  readonly status?: readonly number[];
  /** A regular expression (flags `mu`) for the first line of the answer. */
  readonly match?: string;
}

/** A configured command: check, canary, loader or probe. */
export interface HookConfig {
  /** Program and arguments, with placeholders {candidate}, {current}, {bundle}, {scratch}. */
  readonly run: readonly [string, ...string[]];
  readonly timeoutMs: number;
  /** The settings of its sandbox; absent: the defaults. */
  readonly box?: HookSandboxSettings;
  /** `off`: the command runs unconfined with the rights of the agent, as a loader that applies policy. */
  readonly sandbox?: 'off';
  /** A regular expression (flags `mu`): matching output is a refusal, also with exit code 0. */
  readonly reject?: string;
  /** For loaders, probes and canaries: a refusal under these conditions is ignored, because no worker was reached. */
  readonly unreachable?: UnreachableConfig;
  /** Conditions for a deferral, in addition to exit code 75. */
  readonly notNow?: Pick<NotNowConfig, 'exit' | 'match'>;
  /** Pid file of the daemon that the command connects to: a refusal by a daemon that was dead before is ignored. */
  readonly pidFile?: string;
  /** Further attempts after one without a verdict; absent: none. */
  readonly retry?: number;
}

export type CheckConfig = HookConfig & { readonly kind: 'run'; readonly name: string };

/** The built-in parse check: YAML and JSON files, with an optional JSON Schema. */
export interface ParseCheckConfig {
  readonly kind: 'parse';
  readonly name: string;
  /** Globs of paths inside the bundle, as `*.yaml`. */
  readonly files: readonly string[];
  /** Path of a JSON Schema on the host, or inside the bundle as `bundle:policy.schema.json`. */
  readonly schema?: string;
  readonly timeoutMs: number;
  readonly maxMemoryBytes: number;
}

/** The built-in check of how much a candidate changes the active release. At least one bound is set. */
export interface ChangeCheckConfig {
  readonly kind: 'change';
  readonly name: string;
  /** Percent of the files of the active release that may be missing. */
  readonly maxRemovedPercent?: number;
  /** Size of the candidate in percent of that of the active release. */
  readonly bytesPercent?: { readonly min: number; readonly max: number };
  /** Globs of files of the active release that must not disappear or become empty. */
  readonly files?: readonly string[];
}

export interface BundleConfig {
  readonly name: string;
  readonly channel: string;
  readonly checks: readonly (CheckConfig | ParseCheckConfig | ChangeCheckConfig)[];
  /** Mode of the files in the tree; default 0644. An executable file also gets an execute bit for each read bit. */
  readonly mode: number;
  /** Group that owns the tree, by name or number; default: the agent's own. */
  readonly group?: string | number;
  /** Absent: `defaultBake`. */
  readonly bake?: BakeConfig;
}

/** The bake time of a release, and the failures that it permits. */
export interface BakeConfig {
  /** 0: no bake time. */
  readonly forMs: number;
  /** How many unexplained restarts of one worker are not a failure. */
  readonly restarts: number;
  /** The server that must answer after the swap; absent: none. */
  readonly contact?: ContactServer;
}

export type ContactServer = 'repository' | 'fleet';

export const defaultBake: BakeConfig = { forMs: 600_000, restarts: 2 };

/**
 * @returns the bake settings of a bundle; a `together` set settles as a whole, so each member has the longest `forMs` of its
 *   set, and the `contact` of a member that has one
 */
export function bakeOf(
  { bundles, together }: Pick<AgentConfig, 'bundles' | 'together'>,
  name: string,
): BakeConfig {
  const settings = (one: string): BakeConfig =>
    bundles.find((other) => other.name === one)?.bake ?? defaultBake;
  const set = setOf({ together }, name);
  const contact = [name, ...set].map((one) => settings(one).contact).find((one) => one !== undefined);
  return {
    ...settings(name),
    forMs: Math.max(...set.map((one) => settings(one).forMs)),
    ...given({ contact }),
  };
}

/** @returns the names of the bundles that move together with this one, including this one */
export function setOf({ together }: Pick<AgentConfig, 'together'>, name: string): readonly string[] {
  return together.find((names) => names.includes(name)) ?? [name];
}

/** `retry` counts further failed attempts; absent: the probe is repeated until its deadline. */
export interface ProbeConfig extends HookConfig {
  /** For all attempts together; absent: defaultProbeDeadlineMs. */
  readonly deadlineMs?: number;
  /** Between two attempts; absent: defaultProbeGapMs. */
  readonly gapMs?: number;
  /** Interval of the repeated probe between activations; absent: the probe runs only in activations. */
  readonly everyMs?: number;
}

/** Judges the candidate before the swap: a command, or a started worker and a probe that tests it. */
export type CanaryConfig =
  | { readonly kind: 'run'; readonly hook: HookConfig }
  | {
      readonly kind: 'start';
      readonly start: HookConfig;
      /** Repeated until it succeeds, or `timeoutMs` is over. */
      readonly probe: HookConfig;
      readonly timeoutMs: number;
    };

/** The effect of a notified worker that did not confirm: the outcome is `degraded`, health warns, or none. */
export type ConfirmMode = 'required' | 'warn' | 'accept';

/** How the process of a worker is found; `{worker}` in a text is replaced by its name. */
export type ProcessPlace =
  | { readonly kind: 'unit'; readonly unit: string }
  | { readonly kind: 'pidFile'; readonly path: string }
  /** The path of a unix socket, or HOST:PORT. */
  | { readonly kind: 'listens'; readonly address: string }
  | { readonly kind: 'none' };

export interface ProcessConfig {
  /** Absent: the driver finds the process. */
  readonly place?: ProcessPlace;
  /** Name or path of the program that the process must run. */
  readonly program?: string;
}

export interface WorkerGroupConfig {
  readonly name: string;
  readonly uses: readonly string[];
  /** Globs of paths inside a bundle, or `bundle:glob`: the group is notified of changes there; empty: of any change. */
  readonly when: readonly string[];
  /** Globs as in `when`: a change there requires a restart. Absent: no change does. */
  readonly restartWhen?: readonly string[];
  /** How many workers are notified at a time, after the first one alone; absent: all at once. */
  readonly rolling?: number;
  /** The action for a worker that is dead during a restore; absent: it is reported. */
  readonly onDead?: 'restart' | 'report';
  readonly canary?: CanaryConfig;
  readonly load?: HookConfig;
  readonly reset?: {
    /** The driver's key, as `kresd`. */
    readonly driver: string;
    /** The `reset` object as written, for the driver. */
    readonly options: Readonly<Record<string, unknown>>;
    readonly timeoutMs: number;
    /** Fewer workers than this make the outcome `degraded`. */
    readonly min: number;
    /** Further notifications of a worker that did not answer; absent: none. */
    readonly retry?: number;
    /** For all workers of the group together; absent: no deadline. */
    readonly deadlineMs?: number;
    /** How long a move waits for all deferring workers together; absent: it does not wait. */
    readonly notNowForMs?: number;
  };
  /** The process identity of a worker; absent: as the driver finds it. */
  readonly process?: ProcessConfig;
  readonly confirm: ConfirmMode;
  /** Activation delay after the last change of an offered release; absent: none. */
  readonly settleMs?: number;
  /** Least time between two moves; absent: none. */
  readonly minIntervalMs?: number;
  readonly probe?: ProbeConfig;
}

export type PollConfig =
  | { readonly kind: 'every'; readonly everyMs: number }
  | { readonly kind: 'cron'; readonly expression: string; readonly timeZone?: string };

export type SandboxMode = 'required' | 'auto' | 'off';

/** One mirror of the repository. */
export interface MirrorConfig {
  readonly url: string;
  /** PEM file of the certificate authority to trust instead of those of the system. */
  readonly ca?: string;
  /** Hosts, as `cdn.example.net` or `cdn.example.net:8443`, that it may redirect requests to over https. */
  readonly redirects: readonly string[];
}

/** The fleet server of a host, and the detail of its host reports. */
export interface FleetConfig {
  readonly url: string;
  /** PEM file of the certificate authority to trust instead of those of the system. */
  readonly ca?: string;
  /** File with the token for enrolment; not read after the enrolment. */
  readonly tokenFile: string;
  readonly everyMs: number;
  /** What a report contains of a refusal: its code, also its first line, or its complete text. */
  readonly detail: 'codes' | 'line' | 'full';
  /** `ephemeral`: the server retires the host at an orderly stop, or after 24 h without a report. */
  readonly stay: 'lasting' | 'ephemeral';
  /** `replaces`: the host replaces a host with the same name that has been silent for two intervals. */
  readonly claim: 'new' | 'replaces';
}

export type FreshnessConfig = AgentConfig['freshness'];

export interface AgentConfig {
  /** Mirrors of one repository, tried in order. */
  readonly repository: readonly [MirrorConfig, ...MirrorConfig[]];
  readonly root: string;
  readonly state: string;
  readonly policy: string;
  readonly socket: string;
  /** Directory of the workers' sockets and status.json. */
  readonly run: string;
  readonly host: { readonly id: string; readonly labels: Readonly<Record<string, string>> };
  readonly poll: PollConfig;
  readonly bundles: readonly BundleConfig[];
  /** Sets of bundles that move only together. */
  readonly together: readonly (readonly string[])[];
  readonly workers: readonly WorkerGroupConfig[];
  /** Sandbox of checks, canaries, loaders and probes. `auto`: only if the host has one. */
  readonly sandbox: SandboxMode;
  readonly keep: { readonly generations: number; readonly graceMs: number };
  readonly refusals: { readonly retryMs: number };
  /** The periodic scan of the active policy for damage. */
  readonly scrub: {
    /** Absent: no periodic scrub. */
    readonly everyMs?: number;
    /** `no`: damage is reported and not repaired. */
    readonly repair: 'yes' | 'no';
    /** Limit of its read rate. */
    readonly bytesPerSecond: number;
  };
  /** How old trusted metadata may become, and the commands that run then. */
  readonly freshness: {
    /** Metadata that was not verified for longer than this is `stale`. */
    readonly staleAfterMs: number;
    /** Older metadata is critical; absent: never. */
    readonly maxStaleMs?: number;
    /** The same for an offered release that could not be fetched. */
    readonly release: { readonly staleAfterMs: number; readonly maxStaleMs?: number };
    readonly onStale?: HookConfig;
    /** Runs when policy is fresh again after `onStale` ran. */
    readonly onFresh?: HookConfig;
  };
  /** The action when no trusted key signs the active release any more. */
  readonly untrusted: 'keep' | 'rollback';
  /** The address for Prometheus; absent: no metrics. */
  readonly metrics?:
    | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
    | { readonly kind: 'unix'; readonly path: string };
  /** Absolute path of the file that events are appended to; absent: no events. */
  readonly events?: { readonly file: string };
  /** The fleet server that this host reports to; absent: none. */
  readonly fleet?: FleetConfig;
  /** For requests to repository and fleet; absent: from the environment of the process. */
  readonly proxy?: ProxySetting;
  /** A group of users who may read the status, and nothing else; absent: only root may. */
  readonly read?: {
    readonly group: string | number;
    /** `yes`: including the output of commands and workers. */
    readonly detail: 'yes' | 'no';
  };
  readonly limits: ArchiveLimits;
  readonly metadataLimits: MetadataLimits;
  readonly transport: TransportLimits;
}
