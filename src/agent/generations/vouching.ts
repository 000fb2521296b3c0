// Which releases on this host are no longer vouched for, the active ones and those that a rollback could bring back.
// Reads records and asks the trust store; decides nothing and writes nothing.
import type { AgentConfig } from '../../core/config/config.js';
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { orUndefined, WritError } from '../../core/errors.js';
import { digestHex } from '../../core/names.js';
import type { UntrustedStatus } from '../../core/protocol/control-protocol.js';
import type { Host } from '../state/host.js';
import { activeGenerationNumber, type Generation, listGenerations, readGeneration } from './generations.js';
import { type ReleaseRecord, readLastVoucher, readRecord } from './release-records.js';

/** What is asked: a host without an agent has it too. */
export interface TrustView extends Pick<Host, 'paths'> {
  readonly client: Pick<Host['client'], 'stillVerifies'>;
}

/** @returns the releases of every kept generation that no longer verify; what cannot be read is damage, said elsewhere */
export function findUntrusted(host: TrustView): UntrustedStatus[] {
  const active = activeGenerationNumber(host.paths);
  // A host that never had a policy has not even the directory.
  if (active === undefined) return [];
  return listGenerations(host.paths).flatMap((number) => {
    const generation = orUndefined(() => readGeneration(host.paths, number));
    if (generation === undefined) return [];
    return untrustedIn(host, generation).map((one) => ({ ...one, active: number === active }));
  });
}

/** @returns the releases of one generation that no longer verify */
export function untrustedIn(host: TrustView, generation: Generation): Omit<UntrustedStatus, 'active'>[] {
  return generation.entries.flatMap(({ bundle, tree }) => {
    const found = untrustedRelease(host, bundle, tree.release);
    return found === undefined ? [] : [{ bundle, generation: generation.number, ...found }];
  });
}

/** @returns why a kept release no longer verifies; undefined when it does, and when nobody can say */
export function untrustedRelease(
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

/** @returns the record of a release that the current metadata lists, if the record alone no longer proves the release */
export function findOutdatedRecord(host: TrustView, bundle: string, name: string): ReleaseRecord | undefined {
  const record = orUndefined(() => readRecord(host.paths, bundle, name));
  if (record === undefined) return undefined;
  const proof = proofOf(host, { bundle, name, record });
  if (host.client.stillVerifies({ ...proof, evidence: 'record' })?.kind !== 'untrusted') return undefined;
  return host.client.stillVerifies(proof)?.kind === 'verifies' ? record : undefined;
}

const hintBesideRollback =
  'Publish the bundle again with current keys. `untrusted: rollback` is configured: unless paused, the host activates an older generation if one verifies.';

/**
 * The alarm for each active release of these.
 * @param untrusted the configured reaction, which the hint does not advise again
 */
export function untrustedProblems(
  found: readonly UntrustedStatus[],
  { untrusted }: Pick<AgentConfig, 'untrusted'>,
): Problem[] {
  const hint = untrusted === 'rollback' ? { hint: hintBesideRollback } : {};
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
