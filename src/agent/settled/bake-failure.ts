// The releases that failed within their bake time, and what is reported of them. Pure.
import { WritError } from '../../core/errors.js';
import type { Host } from '../state/host.js';
import type { Bake, BakeFailure, Ledger } from '../state/ledger.js';

export interface FailedRelease {
  readonly bundle: string;
  readonly bake: Bake & { readonly failure: BakeFailure };
}

/** @returns the releases with evidence of failure that are active still */
export function failedIn({ bakes = {} }: Pick<Ledger, 'bakes'>): FailedRelease[] {
  return Object.entries(bakes).flatMap(([bundle, bake]) => {
    const { failure } = bake;
    return failure === undefined ? [] : [{ bundle, bake: { ...bake, failure } }];
  });
}

/** What is reported of releases that failed; facts name the first. */
export function bakeError(
  { clock }: { readonly clock: Pick<Host['clock'], 'nowMs'> },
  failed: readonly FailedRelease[],
): WritError {
  const texts = failed.map(({ bundle, bake }) => `${bundle} ${bake.serial}`);
  const [first] = failed;
  const { startedAtMs = clock.nowMs(), failure } = first?.bake ?? {};
  const afterSeconds = Math.round(((failure?.atMs ?? startedAtMs) - startedAtMs) / 1000);
  const text = `${texts.join(', ')} failed ${afterSeconds} s after activation [${failure?.cause}]: ${failure?.text}`;
  return new WritError('BAKE_FAILED', text, {
    facts: {
      ...{ bundle: first?.bundle, serial: first?.bake.serial, cause: failure?.cause, afterSeconds },
      groups: [...new Set(failed.flatMap(({ bake }) => bake.failure.groups))],
    },
  });
}
