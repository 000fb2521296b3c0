// Chooses the generation for a rollback: intact on disk, trusted by the current keys, and without a withdrawn release unless
// an operator forces it. Reads only. A rollback must never activate a release that only a revoked key has signed.
import { isImplicitRefusal, isWritError, orUndefined, WritError } from '../../core/errors.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import type { Host } from '../state/host.js';
import { treeDamageError } from './damage.js';
import { type ActivePolicy, readBundles } from './generation-contents.js';
import { listGenerations, readGeneration } from './generations.js';
import { findUntrustedIn } from './untrusted-releases.js';
import { expectedPermissions, verifyTree } from './verify-tree.js';

export interface RollbackTargetOptions {
  /** Left out: the previous generation if it is suitable, otherwise the newest older one that is. */
  readonly generation?: number;
  /** `yes`: a withdrawn release is accepted; an untrusted one never is. */
  readonly force: 'yes' | 'no';
  /** `skipped`: generations with a refused release, or with one that workers did not answer to, are not chosen. */
  readonly refused?: 'skipped';
  /** A further condition on the contents of the generation; left out: none. */
  readonly isAllowed?: (policy: ActivePolicy) => boolean;
}

/**
 * Chooses the generation for a rollback and verifies its trees completely.
 * @throws WritError NO_PREVIOUS; STATE_DAMAGED if a tree is damaged; RELEASE_UNTRUSTED; RELEASE_WITHDRAWN. Without a
 *   requested generation, the error of the first candidate
 */
export async function chooseRollbackTarget(
  host: Host,
  active: ActivePolicy | undefined,
  { generation: wanted, force, refused, isAllowed = () => true }: RollbackTargetOptions,
): Promise<ActivePolicy> {
  const candidates = wanted === undefined ? listCandidates(host, active) : [wanted];
  let first: WritError | undefined;
  for (const number of candidates) {
    try {
      const target = await requireSuitable(host, active, { number, force });
      if (!isAllowed(target)) continue;
      if (refused === undefined || !isRefused(host, target)) return target;
      first ??= refusedReleaseError(number);
    } catch (error) {
      if (!isWritError(error)) throw error;
      first ??= error;
    }
  }
  throw first ?? noPreviousError(host, active, undefined);
}

/**
 * @returns true if both generations have the same releases. A restore creates a new generation with the releases of an
 *   older one, and a rollback from one to the other would change no release.
 */
export function hasSameReleases(active: ActivePolicy | undefined, { bundles }: ActivePolicy): boolean {
  if (active?.bundles.size !== bundles.size) return false;
  return [...bundles].every(([bundle, { record }]) => {
    const { serial, manifest } = record.release;
    const other = active.bundles.get(bundle)?.record.release;
    return other?.serial === serial && other.manifest.digest === manifest.digest;
  });
}

/** @returns the previous generation, then the older ones from the newest to the oldest */
function listCandidates(host: Host, active: ActivePolicy | undefined): number[] {
  const { previous } = host.ledger.read();
  const older = listGenerations(host.paths)
    .filter((number) => active !== undefined && number < active.generation.number)
    .reverse();
  return previous === undefined ? older : [previous, ...older.filter((number) => number !== previous)];
}

function isRefused(host: Host, { bundles }: ActivePolicy): boolean {
  const { refusals } = host.refusals.read();
  const silent = Object.entries(host.ledger.read().waiting ?? {}).flatMap(
    ([bundle, { manifestDigest, vain }]) =>
      vain !== undefined && isImplicitRefusal(vain.code) ? [{ bundle, manifestDigest }] : [],
  );
  return [...refusals, ...silent].some(
    ({ bundle, manifestDigest }) => bundles.get(bundle)?.record.release.manifest.digest === manifestDigest,
  );
}

function refusedReleaseError(number: number): WritError {
  return new WritError('NO_PREVIOUS', `generation ${number} contains a release that was refused`, {
    facts: { wanted: number },
    hint: `Choose another generation in \`writ history\`, or force it: \`writ rollback ${number}\`.`,
  });
}

async function requireSuitable(
  host: Host,
  active: ActivePolicy | undefined,
  { number, force }: { readonly number: number; readonly force: 'yes' | 'no' },
): Promise<ActivePolicy> {
  if (!listGenerations(host.paths).includes(number) || number === active?.generation.number)
    throw noPreviousError(host, active, number);
  const generation = readGeneration(host.paths, number);
  requireTrusted(host, generation);
  const target = { generation, bundles: readBundles(host.paths, generation) };
  if (force === 'no') requireNotWithdrawn(host, target);
  for (const [bundle, { entry, manifest }] of target.bundles) {
    const options = { ...expectedPermissions(host, bundle), contents: 'digests' } as const;
    const problems = await verifyTree(entry.treePath, manifest, options);
    if (problems.length > 0) throw treeDamageError(number, bundle, problems);
  }
  return target;
}

const maxShown = 10;

function noPreviousError(
  host: Host,
  active: ActivePolicy | undefined,
  number: number | undefined,
): WritError {
  const what =
    number === undefined
      ? 'no generation before this one is kept'
      : `generation ${number} is not kept, or is active already`;
  const kept = listGenerations(host.paths);
  const others = kept.filter((one) => one !== active?.generation.number).sort((a, b) => b - a);
  const hint = `Kept generations: ${others.slice(0, maxShown).join(', ')}; \`writ history\` shows their contents.`;
  return new WritError('NO_PREVIOUS', what, {
    facts: { wanted: number, kept },
    ...(others.length === 0 || number === undefined ? {} : { hint }),
  });
}

function requireTrusted(host: Host, generation: ActivePolicy['generation']): void {
  const [found] = findUntrustedIn(host, generation);
  if (found === undefined) return;
  const { bundle, serial, reason } = found;
  throw new WritError('RELEASE_UNTRUSTED', `generation ${generation.number}: ${bundle} ${serial} ${reason}`, {
    facts: { generation: generation.number, bundle, serial },
  });
}

function requireNotWithdrawn(host: Host, { generation, bundles }: ActivePolicy): void {
  for (const [bundle, { record }] of bundles) {
    const { serial, channel } = record.release;
    if (!isReleaseWithdrawn(host, { bundle, channel, serial })) continue;
    throw new WritError(
      'RELEASE_WITHDRAWN',
      `generation ${generation.number}: ${bundle} ${serial} was withdrawn`,
      {
        facts: { generation: generation.number, bundle, serial },
      },
    );
  }
}

/**
 * @returns true if the channel of the release, or the channel that the host follows now, has withdrawn it. An unreadable
 *   entry withdraws nothing
 */
export function isReleaseWithdrawn(
  host: Pick<Host, 'config' | 'client'>,
  { bundle, channel, serial }: Pick<ReleaseInfo, 'bundle' | 'channel' | 'serial'>,
): boolean {
  const followed = host.config.bundles.find((one) => one.name === bundle)?.channel ?? channel;
  return [...new Set([channel, followed])].some((one) => {
    const entry = orUndefined(() => host.client.knownTarget(bundle, one));
    return (entry?.release.withdrawn ?? []).includes(serial);
  });
}
