// Which generation a rollback goes to: whole on disk, vouched for by the keys of today, and not withdrawn unless a
// person insists. Reads only. A rollback must never be the way by which a revoked key comes back.
import { isUnsaidNo, isWritError, orUndefined, WritError } from '../../core/errors.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import type { Host } from '../state/host.js';
import { damagedTree } from './damage.js';
import { type ActivePolicy, bundlesOf } from './generation-contents.js';
import { listGenerations, readGeneration } from './generations.js';
import { rightsOf, verifyTree } from './verify-tree.js';
import { untrustedIn } from './vouching.js';

export interface Wish {
  /** Left out: the newest suitable one, the previous generation first. */
  readonly generation?: number;
  /** `yes`: also one with a withdrawn release; never one that does not verify. */
  readonly force: 'yes' | 'no';
  /** `skipped`: never one with a release that is remembered as refused, or that was met with silence. */
  readonly refused?: 'skipped';
  /** Left out: no further condition on what the generation contains. */
  readonly isAllowed?: (policy: ActivePolicy) => boolean;
}

/**
 * @returns the generation to go back to
 * @throws WritError NO_PREVIOUS, STATE_DAMAGED when a tree of it is not whole, RELEASE_UNTRUSTED, RELEASE_WITHDRAWN;
 *   where nobody named one, that of the first that was looked at
 */
export async function chooseTarget(
  host: Host,
  active: ActivePolicy | undefined,
  { generation: wanted, force, refused, isAllowed = () => true }: Wish,
): Promise<ActivePolicy> {
  const candidates = wanted === undefined ? candidatesOf(host, active) : [wanted];
  let first: WritError | undefined;
  for (const number of candidates) {
    try {
      const target = await requireSuitable(host, active, { number, force });
      if (!isAllowed(target)) continue;
      if (refused === undefined || !isRefused(host, target)) return target;
      first ??= holdsRefused(number);
    } catch (error) {
      if (!isWritError(error)) throw error;
      first ??= error;
    }
  }
  throw first ?? noPrevious(host, active, undefined);
}

/** A restore makes a new generation with the releases of an older one. A rollback between the two would leave no release. */
export function hasSameReleases(active: ActivePolicy | undefined, { bundles }: ActivePolicy): boolean {
  if (active?.bundles.size !== bundles.size) return false;
  return [...bundles].every(([bundle, { record }]) => {
    const { serial, manifest } = record.release;
    const other = active.bundles.get(bundle)?.record.release;
    return other?.serial === serial && other.manifest.digest === manifest.digest;
  });
}

/** The previous one, then the older ones from the newest down. */
function candidatesOf(host: Host, active: ActivePolicy | undefined): number[] {
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
      vain !== undefined && isUnsaidNo(vain.code) ? [{ bundle, manifestDigest }] : [],
  );
  return [...refusals, ...silent].some(
    ({ bundle, manifestDigest }) => bundles.get(bundle)?.record.release.manifest.digest === manifestDigest,
  );
}

function holdsRefused(number: number): WritError {
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
    throw noPrevious(host, active, number);
  const generation = readGeneration(host.paths, number);
  requireTrusted(host, generation);
  const target = { generation, bundles: bundlesOf(host.paths, generation) };
  if (force === 'no') requireNotWithdrawn(host, target);
  for (const [bundle, { entry, manifest }] of target.bundles) {
    const options = { ...rightsOf(host, bundle), contents: 'digests' } as const;
    const problems = await verifyTree(entry.treePath, manifest, options);
    if (problems.length > 0) throw damagedTree(number, bundle, problems);
  }
  return target;
}

const maxShown = 10;

function noPrevious(host: Host, active: ActivePolicy | undefined, number: number | undefined): WritError {
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
  const [found] = untrustedIn(host, generation);
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
 * @returns true where the channel that the release came by, or the one that is followed now, has withdrawn it. An entry that
 * cannot be read withdraws nothing
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
