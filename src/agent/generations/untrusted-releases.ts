// Finds releases on this host that the current keys no longer trust: the active ones, and those that a rollback could
// activate. Reads the records and the trust store only.
import type { AgentConfig } from '../../core/config/config.js';
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { orUndefined, WritError } from '../../core/errors.js';
import { digestHex } from '../../core/names.js';
import type { UntrustedStatus } from '../../core/protocol/control-protocol.js';
import type { Host } from '../state/host.js';
import { activeGenerationNumber, type Generation, listGenerations, readGeneration } from './generations.js';
import { type ReleaseRecord, readLastVoucher, readRecord } from './release-records.js';

/** The parts of a host that this file reads; a host without a running agent has them too. */
export interface TrustView extends Pick<Host, 'paths'> {
  readonly client: Pick<Host['client'], 'stillVerifies'>;
}

/** @returns the untrusted releases of every retained generation; an unreadable one is left out, because a scan reports it */
export function findUntrusted(host: TrustView): UntrustedStatus[] {
  const active = activeGenerationNumber(host.paths);
  // Without an active generation the directory may not exist.
  if (active === undefined) return [];
  return listGenerations(host.paths).flatMap((number) => {
    const generation = orUndefined(() => readGeneration(host.paths, number));
    if (generation === undefined) return [];
    return findUntrustedIn(host, generation).map((one) => ({ ...one, active: number === active }));
  });
}

/** @returns the untrusted releases of one generation */
export function findUntrustedIn(host: TrustView, generation: Generation): Omit<UntrustedStatus, 'active'>[] {
  return generation.entries.flatMap(({ bundle, tree }) => {
    const found = findTrustFailure(host, bundle, tree.release);
    return found === undefined ? [] : [{ bundle, generation: generation.number, ...found }];
  });
}

/**
 * Verifies the record of a retained release with the current keys.
 * @param name directory name of the release, `<serial>-<digest12>`
 * @returns serial and reason of an untrusted release; undefined if it verifies or the record is unreadable
 */
export function findTrustFailure(
  host: TrustView,
  bundle: string,
  name: string,
): Pick<UntrustedStatus, 'serial' | 'reason'> | undefined {
  const record = orUndefined(() => readRecord(host.paths, bundle, name));
  if (record === undefined) return undefined;
  const verdict = host.client.stillVerifies(proofOf(host, { bundle, name, record }));
  if (verdict === undefined || verdict.kind === 'verifies') return undefined;
  return { serial: record.release.serial, reason: verdict.reason };
}

interface RecordedRelease {
  readonly bundle: string;
  readonly name: string;
  readonly record: ReleaseRecord;
}

function proofOf({ paths }: Pick<TrustView, 'paths'>, { bundle, name, record }: RecordedRelease) {
  return {
    path: record.target,
    length: record.archive.length,
    sha256: digestHex(record.archive.digest),
    role: record.vouchedBy.at(-1) ?? 'targets',
    metadata: () => orUndefined(() => readLastVoucher(paths, bundle, name)),
  };
}

/** @returns the record of a release that verifies only because the current metadata lists it; undefined for any other */
export function findOutdatedRecord(host: TrustView, bundle: string, name: string): ReleaseRecord | undefined {
  const record = orUndefined(() => readRecord(host.paths, bundle, name));
  if (record === undefined) return undefined;
  const proof = proofOf(host, { bundle, name, record });
  if (host.client.stillVerifies({ ...proof, evidence: 'record' })?.kind !== 'untrusted') return undefined;
  return host.client.stillVerifies(proof)?.kind === 'verifies' ? record : undefined;
}

const rollbackHint =
  'Publish the bundle again with current keys. `untrusted: rollback` is configured: unless paused, the host activates an older generation if one verifies.';

/**
 * Creates one problem for each active untrusted release.
 * @param config.untrusted the configured reaction; the hint does not recommend what is configured already
 */
export function untrustedProblems(
  found: readonly UntrustedStatus[],
  { untrusted }: Pick<AgentConfig, 'untrusted'>,
): Problem[] {
  const hint = untrusted === 'rollback' ? { hint: rollbackHint } : {};
  return found
    .filter((one) => one.active)
    .map(({ bundle, serial, generation, reason }) =>
      problemOf(
        new WritError('UNTRUSTED_ACTIVE', `${bundle} ${serial} is active and ${reason}`, {
          ...hint,
          facts: { bundle, serial, generation },
        }),
      ),
    );
}
