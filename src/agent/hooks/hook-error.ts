// The error that the end of a user's command means, by what the command was asked for. Owns the codes alone: which
// release, group or worker a no falls on is the caller's.
import type { HookVerdictKind } from '../../core/cycle/hook-verdict.js';
import { type ErrorCode, type ErrorFacts, WritError } from '../../core/errors.js';
import type { HookReport } from './hook.js';

type NoYes = Exclude<HookVerdictKind, 'ok' | 'warned'>;

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
  { verdict: { kind }, code: ours, hint }: Pick<HookReport, 'verdict' | 'code' | 'hint'>,
  { text, facts }: { readonly text: (says: string) => string; readonly facts: ErrorFacts },
): WritError | undefined {
  if (kind === 'ok' || kind === 'warned') return undefined;
  const code = ours ?? codes[role][kind];
  if (code === undefined) return undefined;
  return new WritError(code, text(says[kind]), { facts, ...(hint === undefined ? {} : { hint }) });
}
