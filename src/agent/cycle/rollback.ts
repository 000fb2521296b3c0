// `writ rollback`: moves to an older generation with the same swap, loader and reset, without the network. The releases that
// it leaves get a hold, because the next poll would activate them again.
import type { CycleEventLine } from '../../core/cycle/cycle-report.js';
import { orUndefined, WritError } from '../../core/errors.js';
import { changedPaths } from '../../core/release/affected-groups.js';
import { activate } from '../activation/activate.js';
import { affectedGroups } from '../activation/affected-groups.js';
import type { PolicyBundles } from '../bake/settled-policy.js';
import { settledGeneration, settledTarget } from '../bake/settled-target.js';
import {
  type ActiveBundle,
  type ActivePolicy,
  readActivePolicy,
} from '../generations/generation-contents.js';
import {
  chooseRollbackTarget,
  hasSameReleases,
  type RollbackTargetOptions,
} from '../generations/rollback-target.js';
import { touchTrees } from '../generations/touch-trees.js';
import { bundleBefore, bundleMoved, type CycleEnd, noteBundles } from '../job/cycle-result.js';
import { type Job, runJob } from '../job/job.js';
import { newCycleId } from '../job/progress.js';
import { withHolds } from '../select/holds-and-blocks.js';
import type { Host } from '../state/host.js';
import type { Hold } from '../state/ledger.js';
import { findRefusal } from '../state/refusal-rules.js';

export interface RollbackRequest {
  /**
   * The generation that was active at the request; another active one is an error, because the operator did not see it. Omitted
   * by exit rollbacks.
   */
  readonly left?: number | 'none';
  /** The target. Omitted: the newest settled state, else the previous generation. */
  readonly generation?: number;
  /** For an exit rollback from withdrawn releases; omitted for other rollbacks. */
  readonly exit?: WithdrawnRelease;
  /** True: also to a release that was withdrawn. */
  readonly force?: boolean;
  readonly by: string;
  readonly reason?: string;
  readonly signal: AbortSignal;
  readonly onEvent?: (event: CycleEventLine) => void;
}

export interface WithdrawnRelease {
  /** Names of the bundles with a withdrawn active release. */
  readonly leaving: readonly string[];
  /** The verified replacement. */
  readonly target: ExitTarget;
}

export type ExitTarget =
  | { readonly kind: 'settled'; readonly bundles: PolicyBundles }
  | { readonly kind: 'kept'; readonly policy: ActivePolicy };

/**
 * Rolls back under a new id. Never rejects: GENERATION_CHANGED, NO_PREVIOUS, RELEASE_UNTRUSTED, RELEASE_WITHDRAWN,
 * STATE_DAMAGED and worker refusals are problems of the result.
 */
export function rollBack(host: Host, request: RollbackRequest): Promise<CycleEnd> {
  const { generation, exit, signal, onEvent = () => undefined } = request;
  const options = { cycle: newCycleId(), trigger: 'rollback', firstStep: 'swap', onEvent } as const;
  return runJob(host, { ...options, type: 'rollback.result' }, async ({ progress, record, area }) => {
    const active = readActivePolicy(host.paths);
    const from = active?.generation.number;
    record.fromGeneration = from;
    requireLeft(request.left, from ?? 'none');
    const force = request.force === true ? 'yes' : 'no';
    const target =
      generation === undefined
        ? await chooseWorking({ host, area }, { active, force, exit })
        : await chooseRollbackTarget(host, active, { force, generation });
    const to = target.generation.number;
    await touchTrees(host, { comingBack: to, inUse: from });
    const moved = await activate(host, progress, {
      ...{ kind: 'rollback', from, to, releases: [], staging: area.path(), signal },
      groups: affectedGroups(host, { paths: changedPaths(active?.bundles ?? new Map(), target.bundles) }),
      ledger: (ledger) => withHolds(ledger, holdsOn(host, { active, target, request })),
    });
    record.moves.push(moved);
    const results = [...target.bundles].map(
      ([
        bundle,
        {
          record: { release },
        },
      ]) => {
        const fromSerial = active?.bundles.get(bundle)?.record.release.serial;
        const result = bundleMoved(bundleBefore(release, fromSerial), moved);
        if (fromSerial === release.serial) return { ...result, outcome: 'unchanged' as const };
        return isOffered(host, active?.bundles.get(bundle))
          ? { ...result, resumable: true as const }
          : result;
      },
    );
    noteBundles(record, results);
  });
}

/** @throws WritError GENERATION_CHANGED */
function requireLeft(asked: RollbackRequest['left'], activeNow: number | 'none'): void {
  if (asked === undefined || asked === activeNow) return;
  const nameOf = (one: number | 'none'): string => (one === 'none' ? 'no generation' : `generation ${one}`);
  const text = `${nameOf(activeNow)} is active now; ${nameOf(asked)} was when this rollback was ordered`;
  throw new WritError('GENERATION_CHANGED', text, { facts: { active: activeNow, asked } });
}

/**
 * Chooses the target of a rollback without a generation: the newest settled state, else the previous generation. Generations
 * that workers refused after their swap are skipped.
 */
async function chooseWorking(
  job: Pick<Job, 'host' | 'area'>,
  {
    active,
    force,
    exit,
  }: {
    readonly active: ActivePolicy | undefined;
    readonly force: RollbackTargetOptions['force'];
    readonly exit: WithdrawnRelease | undefined;
  },
): Promise<ActivePolicy> {
  if (exit?.target.kind === 'kept') return exit.target.policy;
  const settled = exit?.target.bundles;
  const found =
    active && (await (settled ? settledGeneration(job, active, settled) : settledTarget(job, active)));
  const isAllowed = (policy: ActivePolicy): boolean => !hasSameReleases(active, policy);
  return found ?? (await chooseRollbackTarget(job.host, active, { force, refused: 'skipped', isAllowed }));
}

/** Whether the repository may still offer the release that is left; true when the offered release is unknown. */
function isOffered(host: Host, left: ActiveBundle | undefined): boolean {
  if (left === undefined) return false;
  const { bundle, channel, manifest } = left.record.release;
  const offered = orUndefined(() => host.client.knownTarget(bundle, channel))?.release.manifest.digest;
  if (offered !== undefined && offered !== manifest.digest) return false;
  return findRefusal(host.refusals.read().refusals, bundle, manifest.digest) === undefined;
}

interface Leaving {
  readonly active: ActivePolicy | undefined;
  readonly target: ActivePolicy;
  readonly request: RollbackRequest;
}

function holdsOn(host: Host, { active, target, request }: Leaving): Hold[] {
  const left = [...(active?.bundles.values() ?? [])].filter(({ record }) => {
    const kept = target.bundles.get(record.release.bundle)?.record.release;
    return kept?.manifest.digest !== record.release.manifest.digest || kept.serial !== record.release.serial;
  });
  const { exit, by, force, reason = 'no reason given' } = request;
  const leaving = exit?.leaving ?? [];
  const forced = force === true ? ({ isForced: true } as const) : {};
  // A withdrawn release needs no hold, and a hold would block lower serials too.
  const held = left.filter(({ record }) => !leaving.includes(record.release.bundle));
  return held.map(({ record }) => {
    const { bundle, serial, manifest } = record.release;
    const atMs = host.clock.nowMs();
    return { bundle, serial, manifestDigest: manifest.digest, by, reason, atMs, ...forced };
  });
}
