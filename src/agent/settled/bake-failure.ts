// The releases that failed within their bake time, and what is reported of them. Pure.
import type { AgentConfig } from '../../core/config/config.js';
import { WritError } from '../../core/errors.js';
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

/**
 * A member of a set is restored with the others, and is not at fault where no failing group uses it.
 * @returns true where no group failed: then the whole host did
 */
export function isBlamed(
  { workers }: Pick<AgentConfig, 'workers'>,
  bundle: string,
  groups: readonly string[],
): boolean {
  return (
    groups.length === 0 || workers.some(({ name, uses }) => groups.includes(name) && uses.includes(bundle))
  );
}

/** @returns BAKE_FAILED, with the time of each release and the text of each failure; the facts are those of a release at fault */
export function bakeError(
  { config }: { readonly config: Pick<AgentConfig, 'workers'> },
  failed: readonly FailedRelease[],
): WritError {
  const first = failed.find((one) => isAtFault(config, one)) ?? failed[0];
  const texts = new Set(failed.map(({ bake }) => textOf(config, failed, bake.failure)));
  return new WritError('BAKE_FAILED', [...texts].join('; '), {
    facts: {
      ...{ bundle: first?.bundle, serial: first?.bake.serial, cause: first?.bake.failure.cause },
      afterSeconds: first && secondsUntilFailure(first),
      groups: [...new Set(failed.flatMap(({ bake }) => bake.failure.groups))],
    },
  });
}

function textOf(
  config: Pick<AgentConfig, 'workers'>,
  failed: readonly FailedRelease[],
  { cause, text }: BakeFailure,
): string {
  const alike = failed.filter(({ bake: { failure } }) => failure.cause === cause && failure.text === text);
  const blamed = alike.filter((one) => isAtFault(config, one));
  // A configuration that changed since may use none of them.
  const atFault = blamed.length === 0 ? alike : blamed;
  const times = [...new Set(atFault.map(secondsUntilFailure))].map((seconds) => {
    const names = atFault.filter((one) => secondsUntilFailure(one) === seconds).map(nameOf);
    return `${names.join(', ')} failed ${seconds} s after activation`;
  });
  const others = alike.filter((one) => !atFault.includes(one)).map(nameOf);
  const members = others.length === 0 ? '' : `; of the same set: ${others.join(', ')}`;
  return `${times.join(', ')} [${cause}]: ${text}${members}`;
}

function isAtFault(config: Pick<AgentConfig, 'workers'>, { bundle, bake }: FailedRelease): boolean {
  return isBlamed(config, bundle, bake.failure.groups);
}

function nameOf({ bundle, bake }: FailedRelease): string {
  return `${bundle} ${bake.serial}`;
}

function secondsUntilFailure({ bake: { startedAtMs, failure } }: FailedRelease): number {
  return Math.round((failure.atMs - startedAtMs) / 1000);
}
