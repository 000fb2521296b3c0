// The options and the report of a user's command, and the error for its end by the role of the command. The caller adds the release,
// the group or the worker. run-hook.ts runs the command.
import { join } from 'node:path';
import type { HookConfig } from '../../core/config/config.js';
import type { HookVerdict, HookVerdictKind } from '../../core/cycle/hook-verdict.js';
import { type ErrorCode, type ErrorFacts, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { DiskGuardOptions } from '../../platform/disk/disk-guard.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Sandbox } from '../state/host.js';
import { generationLink } from '../state/paths.js';
import type { ConfineOptions } from './confine.js';
import { type CandidateView, emptyGenerationPath } from './policy-view.js';

/** The paths that a command examines. */
export interface HookPlaces {
  /** The generation to examine, as WRIT_GENERATION_DIR. Undefined if no generation is active. */
  readonly generation?: string;
  /** For `{candidate}`. */
  readonly candidate?: string | undefined;
  /** For `{current}`; undefined before the first activation: the command then gets an empty directory. */
  readonly current?: string | undefined;
  /** For `{bundle}` and WRIT_BUNDLE_DIR; undefined if the command examines more than one bundle. */
  readonly bundle?: string | undefined;
}

/** The sandbox options of a command. */
export interface HookSandbox extends Omit<ConfineOptions, 'hook'> {
  readonly sandbox: Sandbox;
  /** Paths inside the sandbox, from sandboxForCandidate; undefined: the same as outside. */
  readonly places?: HookPlaces;
}

export interface HookOptions {
  readonly hook: HookConfig;
  /** Paths on the host, for a command without a sandbox. */
  readonly places: HookPlaces;
  /**
   * Undefined: the command runs as the agent and without a sandbox, whatever the configuration is. Otherwise the mode of the
   * sandbox and the command's own `sandbox: off` decide.
   */
  readonly confine?: HookSandbox | undefined;
  /** An existing private directory. The command's directory in it is removed after the run. */
  readonly scratchRoot: string;
  readonly durable: DurableFs;
  /** An existing directory that several commands share in place of a private one; the caller removes it. */
  readonly scratch?: string;
  /** Environment variables in addition to those for the paths. */
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Reads the free space of the disk that a confined command writes to; undefined: by statfs. */
  readonly readFree?: NonNullable<DiskGuardOptions['readFree']>;
}

export interface HookReport {
  readonly verdict: HookVerdict;
  /** Output of both streams, bounded, without control characters. */
  readonly text: string;
  readonly durationMs: number;
  /** Why there is no verdict, if the command is not the cause: SANDBOX_MISSING, SANDBOX_BROKEN, PROGRAM_REPLACED. */
  readonly code?: ErrorCode | undefined;
  /** The command could not be started, and a later attempt would fail too. */
  readonly isNotRun?: true;
  /** The process of the probed worker is stopped, so that its answer does not count. */
  readonly isStopped?: true;
  /** The fault of this host that the first line of a refusal names. */
  readonly hostFault?: string;
  /** The advice for the operator. */
  readonly hint?: string;
  /** Whether the sandbox had the host's network; undefined for a command without a sandbox. */
  readonly sandboxed?: 'with-network' | 'without-network';
}

/** The sandbox options of commands that judge a candidate. */
export interface CandidateSandbox extends Omit<HookSandbox, 'places'> {
  readonly view: CandidateView;
}

/**
 * Adds the paths of a candidate inside the sandbox.
 * @param bundle the name of the bundle for `{bundle}`; undefined for none
 */
export function sandboxForCandidate(confine: CandidateSandbox, bundle: string | undefined): HookSandbox {
  const { policy } = confine.paths;
  const { candidate, active } = confine.view;
  const path = join(policy, generationLink(candidate.generation));
  const tree = candidate.trees.find((one) => one.bundle === bundle);
  const places: HookPlaces = {
    generation: path,
    candidate: path,
    current:
      active === undefined ? emptyGenerationPath(policy) : join(policy, generationLink(active.generation)),
    bundle: tree && join(policy, 'bundles', tree.bundle, tree.directory),
  };
  return { ...confine, places };
}

/** An unreachable worker is neither a failure nor a success. */
type FailedVerdict = Exclude<HookVerdictKind, 'ok' | 'warned' | 'unreachable'>;

/** The error code of each failure, by the role of the command. */
const failureCodes = {
  check: { refused: 'CHECK_FAILED', broken: 'CHECK_BROKEN', deferred: 'CHECK_DEFERRED' },
  canary: { refused: 'CANARY_FAILED', broken: 'CANARY_BROKEN', deferred: 'CANARY_DEFERRED' },
  loader: { refused: 'LOADER_FAILED', broken: 'LOADER_BROKEN', deferred: 'LOADER_DEFERRED' },
  // "Not now" of a probe neither confirms nor refutes the policy, so it is not an error.
  probe: { refused: 'PROBE_FAILED', broken: 'PROBE_BROKEN', deferred: undefined },
} as const satisfies Record<string, Record<FailedVerdict, ErrorCode | undefined>>;

const verdictTexts: Readonly<Record<FailedVerdict, string>> = {
  refused: 'refuses the candidate',
  broken: 'gave no verdict',
  deferred: 'says "not now"',
};

/**
 * Makes the error for the end of a command.
 * @param text makes the message from the text of the verdict
 * @returns undefined for an end that is not an error; an error with `code` of the report if the sandbox is the cause
 */
export function hookError(
  role: keyof typeof failureCodes,
  { verdict: { kind }, code: ours, hint, sandboxed, hostFault }: Omit<HookReport, 'text' | 'durationMs'>,
  { text, facts }: { readonly text: (verdictText: string) => string; readonly facts: ErrorFacts },
): WritError | undefined {
  if (kind === 'ok' || kind === 'unreachable') return undefined;
  // A check may end with a warning. A loader that ends so, as curl does without an answer, has not loaded the policy.
  if (kind === 'warned' && role !== 'loader') return undefined;
  const failure = kind === 'warned' ? 'broken' : kind;
  const code = ours ?? failureCodes[role][failure];
  if (code === undefined) return undefined;
  return new WritError(code, text(verdictTexts[failure]), {
    facts: { ...facts, ...given({ hostFault }) },
    ...given({ hint: hint ?? probeHint(role, sandboxed) }),
  });
}

/** Hints for probes only: they use network and sockets more than other commands, and the sandbox often causes their failure. */
function probeHint(role: keyof typeof failureCodes, sandboxed: HookReport['sandboxed']): string | undefined {
  if (role !== 'probe' || sandboxed === undefined) return undefined;
  const what =
    sandboxed === 'without-network'
      ? 'without network and with an empty /run: `network: true` or `binds` of the probe open them'
      : 'with an empty /run: `binds` of the probe shows a path of it';
  return `Ask the worker yourself, and read \`writ history\`. The probe ran in the sandbox, ${what}.`;
}
