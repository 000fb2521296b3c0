// What a command of the user is given, what came of it, what one that judges a candidate is shown, and the error that its end
// means by what it was asked for: on which release, group or worker that falls is the caller's. run-hook.ts runs it.
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
import { type CandidateView, nothingActive } from './policy-view.js';

/** What a command is shown. */
export interface HookPlaces {
  /** The generation that it is about; its WRIT_GENERATION_DIR. Left out where none is active. */
  readonly generation?: string;
  /** For `{candidate}`. */
  readonly candidate?: string | undefined;
  /** For `{current}`; left out before the first activation: the command then gets an empty directory. */
  readonly current?: string | undefined;
  /** For `{bundle}` and WRIT_BUNDLE_DIR; left out where there is not one bundle alone. */
  readonly bundle?: string | undefined;
}

/** How a command is to be confined. */
export interface HookSandbox extends Omit<ConfineOptions, 'hook'> {
  readonly sandbox: Sandbox;
  /** Paths that hold inside of it (confinedTo makes them); left out: the same as outside. */
  readonly places?: HookPlaces;
}

export interface HookOptions {
  readonly hook: HookConfig;
  /** As they are on the host: for a command that is not confined. */
  readonly places: HookPlaces;
  /**
   * Left out: the command acts on the host as the agent itself, whatever the configuration says of a sandbox. With
   * it, the mode of the sandbox and the hook's own `sandbox: off` decide.
   */
  readonly confine?: HookSandbox | undefined;
  /** An existing private directory; what the command gets in it is removed afterwards. */
  readonly scratchRoot: string;
  readonly durable: DurableFs;
  /** An existing directory in place of a private one, for commands that must meet; its maker removes it. */
  readonly scratch?: string;
  /** Beside the places. */
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Of the disk that a confined command writes to; left out: as statfs says. */
  readonly readFree?: NonNullable<DiskGuardOptions['readFree']>;
}

export interface HookReport {
  readonly verdict: HookVerdict;
  /** Output of both streams, bounded, without control characters. */
  readonly text: string;
  readonly durationMs: number;
  /** Where no command is to blame that there is no verdict: SANDBOX_MISSING, SANDBOX_BROKEN, PROGRAM_REPLACED. */
  readonly code?: ErrorCode | undefined;
  /** The command could not be started: waiting does not change that. */
  readonly isNotRun?: true;
  /** The process of a worker that was asked about is stopped, so that no answer counts. */
  readonly isStopped?: true;
  /** Of a refusal whose first line names a fault of this host. */
  readonly hostFault?: string;
  /** What a person may want to change. */
  readonly hint?: string;
  /** Whether it had the host's network; left out where it ran as it is. */
  readonly sandboxed?: 'with-network' | 'without-network';
}

/** For commands that judge a candidate. */
export interface CandidateSandbox extends Omit<HookSandbox, 'places'> {
  readonly view: CandidateView;
}

/**
 * What a command is shown of a candidate, as paths that hold inside of the sandbox.
 * @param bundle whose tree is `{bundle}`
 */
export function confinedTo(confine: CandidateSandbox, bundle: string | undefined): HookSandbox {
  const { policy } = confine.paths;
  const { candidate, active } = confine.view;
  const path = join(policy, generationLink(candidate.generation));
  const tree = candidate.trees.find((one) => one.bundle === bundle);
  const places: HookPlaces = {
    generation: path,
    candidate: path,
    current: active === undefined ? nothingActive(policy) : join(policy, generationLink(active.generation)),
    bundle: tree && join(policy, 'bundles', tree.bundle, tree.directory),
  };
  return { ...confine, places };
}

/** Who reached nobody has said nothing: no error, and no yes. */
type NoYes = Exclude<HookVerdictKind, 'ok' | 'warned' | 'unreachable'>;

/** The code of each end that is no yes, by what the command was asked for. */
const codes = {
  check: { refused: 'CHECK_FAILED', broken: 'CHECK_BROKEN', deferred: 'CHECK_DEFERRED' },
  canary: { refused: 'CANARY_FAILED', broken: 'CANARY_BROKEN', deferred: 'CANARY_DEFERRED' },
  loader: { refused: 'LOADER_FAILED', broken: 'LOADER_BROKEN', deferred: 'LOADER_DEFERRED' },
  // "Not now" of a probe proves nothing and refutes nothing: it is no error.
  probe: { refused: 'PROBE_FAILED', broken: 'PROBE_BROKEN', deferred: undefined },
} as const satisfies Record<string, Record<NoYes, ErrorCode | undefined>>;

const says: Readonly<Record<NoYes, string>> = {
  refused: 'refuses the candidate',
  broken: 'gave no verdict',
  deferred: 'says "not now"',
};

/**
 * @param text of the message, from what the command says of a candidate
 * @returns undefined for a yes; where the sandbox was to blame, its code
 */
export function hookError(
  role: keyof typeof codes,
  { verdict: { kind }, code: ours, hint, sandboxed, hostFault }: Omit<HookReport, 'text' | 'durationMs'>,
  { text, facts }: { readonly text: (says: string) => string; readonly facts: ErrorFacts },
): WritError | undefined {
  if (kind === 'ok' || kind === 'unreachable') return undefined;
  // A warning of a check goes on; a loader that ends so, as curl does without an answer, has not loaded the policy.
  if (kind === 'warned' && role !== 'loader') return undefined;
  const no = kind === 'warned' ? 'broken' : kind;
  const code = ours ?? codes[role][no];
  if (code === undefined) return undefined;
  return new WritError(code, text(says[no]), {
    facts: { ...facts, ...given({ hostFault }) },
    ...given({ hint: hint ?? probeHint(role, sandboxed) }),
  });
}

/** A probe reaches out more than any other command: what it did not reach is rarely the policy's fault. */
function probeHint(role: keyof typeof codes, sandboxed: HookReport['sandboxed']): string | undefined {
  if (role !== 'probe' || sandboxed === undefined) return undefined;
  const what =
    sandboxed === 'without-network'
      ? 'without network and with an empty /run: `network: true` or `binds` of the probe open them'
      : 'with an empty /run: `binds` of the probe shows a path of it';
  return `Ask the worker yourself, and read \`writ history\`. The probe ran in the sandbox, ${what}.`;
}
