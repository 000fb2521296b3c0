// The agent's configuration as the rest of Writ sees it: defaults filled in, durations in milliseconds,
// names checked (docs/configuration.md). Owns the shape; config-schema judges the YAML.

import { given } from '../given.js';
import type { ArchiveLimits, MetadataLimits, TransportLimits } from '../limits.js';
import type { ProxySetting } from '../proxy-rules.js';
import type { HookBox } from './hook-box.js';

/** How a program says that it did not reach its daemon: all that is given must hold. */
export interface Unreachable {
  readonly exit?: readonly number[];
  /** A regular expression (flags `mu`), for what it wrote. */
  readonly match?: string;
}

/** How a program or a daemon says that it was reached and is busy: all that is given must hold. */
export interface NotNow {
  readonly exit?: readonly number[];
  readonly status?: readonly number[];
  /** A regular expression (flags `mu`), for the first line of the answer. */
  readonly match?: string;
}

/** A user's command: checks, loaders, probes. */
export interface HookConfig {
  /** Program and arguments, with placeholders {candidate}, {current}, {bundle}, {scratch}. */
  readonly run: readonly [string, ...string[]];
  readonly timeoutMs: number;
  /** What it asks of its sandbox; left out: the defaults. */
  readonly box?: HookBox;
  /** `off`: it acts on the host, as a loader that applies policy, with all that the agent may do. */
  readonly sandbox?: 'off';
  /** A pattern (flags `mu`): output that it matches is a refusal, whatever the exit code says. */
  readonly reject?: string;
  /** How it says that it reached no worker: then its no is none. Of loaders, probes and canaries. */
  readonly unreachable?: Unreachable;
  /** How it says "not now", beside exit code 75. */
  readonly notNow?: Pick<NotNow, 'exit' | 'match'>;
  /** Of the daemon that it speaks to: where that was dead before, a no is none. */
  readonly pidFile?: string;
  /** Further tries of one that ended without a verdict; left out: none. */
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

/** The built-in check of how much a candidate changes of the active release. At least one bound is given. */
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
  /** Octal modes of the public tree; defaults 0644 and 0755 for directories and executables. */
  readonly mode: number;
  /** Group that owns the tree, by name or number; default: the agent's own. */
  readonly group?: string | number;
  /** Left out: `defaultBake`. */
  readonly bake?: BakeConfig;
}

/** How long, and by what, a release must prove itself after its activation. */
export interface BakeConfig {
  /** 0: no bake time. */
  readonly forMs: number;
  /** So many unexplained restarts of one worker are not a failure. */
  readonly restarts: number;
  /** The server that must answer after the swap; left out: none. */
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

/** @returns the names of the bundles that move together with this one, itself among them */
export function setOf({ together }: Pick<AgentConfig, 'together'>, name: string): readonly string[] {
  return together.find((names) => names.includes(name)) ?? [name];
}

/** Its `retry` counts further wrong answers; left out: it is asked until the deadline. */
export interface ProbeConfig extends HookConfig {
  /** For all attempts together; left out: defaultProbeDeadlineMs. */
  readonly deadlineMs?: number;
  /** Between two attempts; left out: defaultProbeGapMs. */
  readonly gapMs?: number;
  /** Asked again so often between activations; left out: in activations alone. */
  readonly everyMs?: number;
}

/** What is asked on the candidate before the swap: a command, or a worker of its own and a probe that asks it. */
export type CanaryConfig =
  | { readonly kind: 'run'; readonly hook: HookConfig }
  | {
      readonly kind: 'start';
      readonly start: HookConfig;
      /** Tried until it says yes, or `timeoutMs` is over. */
      readonly probe: HookConfig;
      readonly timeoutMs: number;
    };

/** What it means that a worker was notified and proved nothing: the outcome is `degraded`, health warns, or it is accepted. */
export type ConfirmMode = 'required' | 'warn' | 'accept';

/** How the process of a worker is found; `{worker}` in a text stands for its name. */
export type ProcessPlace =
  | { readonly kind: 'unit'; readonly unit: string }
  | { readonly kind: 'pidFile'; readonly path: string }
  /** The path of a unix socket, or HOST:PORT. */
  | { readonly kind: 'listens'; readonly address: string }
  | { readonly kind: 'none' };

export interface ProcessConfig {
  /** Left out: the one of the driver. */
  readonly place?: ProcessPlace;
  /** Name or path of the program that the process must run. */
  readonly program?: string;
}

export interface WorkerGroupConfig {
  readonly name: string;
  readonly uses: readonly string[];
  /** Globs of paths inside a bundle, or `bundle:glob`, for which the group is notified; empty: any change. */
  readonly when: readonly string[];
  /** Globs as in `when`: a change there is taken over by a restart. Left out: nothing is. */
  readonly restartWhen?: readonly string[];
  /** So many workers are notified at a time, the first one alone; left out: all at once. */
  readonly rolling?: number;
  /** What becomes of a worker that is dead on the way back; left out: it is reported. */
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
    /** Further notifications of a worker that did not answer; left out: none. */
    readonly retry?: number;
    /** For all workers of the group together; left out: as long as they take. */
    readonly deadlineMs?: number;
    /** So long those are waited for that say "not now", all together; left out: not at all. */
    readonly notNowForMs?: number;
  };
  /** Which process a worker is; left out: the one of the driver. */
  readonly process?: ProcessConfig;
  readonly confirm: ConfirmMode;
  /** Quiet time after the last change, before the group is moved; left out: none. */
  readonly settleMs?: number;
  /** Least time between two moves; left out: none. */
  readonly minIntervalMs?: number;
  readonly probe?: ProbeConfig;
}

export type PollConfig =
  | { readonly kind: 'every'; readonly everyMs: number }
  | { readonly kind: 'cron'; readonly expression: string; readonly timeZone?: string };

export type SandboxMode = 'required' | 'auto' | 'off';

/** One place of the repository. */
export interface MirrorConfig {
  readonly url: string;
  /** PEM file of the certificate authority to trust in place of the system's. */
  readonly ca?: string;
  /** Hosts, as `cdn.example.net` or `cdn.example.net:8443`, that it may send us to over https. */
  readonly redirects: readonly string[];
}

/** Whom a host tells how it is, and how much of it. */
export interface FleetConfig {
  readonly url: string;
  /** PEM file of the certificate authority to trust in place of the system's. */
  readonly ca?: string;
  /** Of the token that enrolment asks for; not read any more once enrolled. */
  readonly tokenFile: string;
  readonly everyMs: number;
  /** How much is said of why something was refused: its code; its first line too; all of it. */
  readonly detail: 'codes' | 'line' | 'full';
  /** `ephemeral`: the server retires it at an orderly stop, or after 24 h of silence. */
  readonly stay: 'lasting' | 'ephemeral';
  /** `replaces`: it takes the place of a host of its name that has been silent for two intervals. */
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
  /** Of checks, loaders and probes. `auto`: where there is one. */
  readonly sandbox: SandboxMode;
  readonly keep: { readonly generations: number; readonly graceMs: number };
  readonly refusals: { readonly retryMs: number };
  /** How the active policy is looked over for damage. */
  readonly scrub: {
    /** Left out: no timer. */
    readonly everyMs?: number;
    /** `no`: damage is reported and left as it is. */
    readonly repair: 'yes' | 'no';
    /** Bytes per second that it may read. */
    readonly bytesPerSecond: number;
  };
  /** How old what this host trusts may become, and what is run then. */
  readonly freshness: {
    /** Not proven current for longer than this is `stale`. */
    readonly staleAfterMs: number;
    /** Older than this is critical; left out: never. */
    readonly maxStaleMs?: number;
    /** The same of a release that is offered and could not be had. */
    readonly release: { readonly staleAfterMs: number; readonly maxStaleMs?: number };
    readonly onStale?: HookConfig;
    /** Run when it is fresh again after `onStale` was run. */
    readonly onFresh?: HookConfig;
  };
  /** What follows when the active release is no longer vouched for by keys that this host trusts. */
  readonly untrusted: 'keep' | 'rollback';
  /** Where Prometheus asks; left out: no metrics. */
  readonly metrics?:
    | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
    | { readonly kind: 'unix'; readonly path: string };
  /** Absolute path of the file that events are appended to; left out: no events. */
  readonly events?: { readonly file: string };
  /** The fleet server that this host reports to; left out: none. */
  readonly fleet?: FleetConfig;
  /** On the way to repository and fleet; left out: as the environment of the process says. */
  readonly proxy?: ProxySetting;
  /** A group that may ask how this host is, and nothing else; left out: root alone. */
  readonly read?: {
    readonly group: string | number;
    /** `yes`: also what commands and workers wrote. */
    readonly detail: 'yes' | 'no';
  };
  readonly limits: ArchiveLimits;
  readonly metadataLimits: MetadataLimits;
  readonly transport: TransportLimits;
}
