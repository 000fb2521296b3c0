// Settled releases as a generation on disk that `current` can move to: judged by the consumer's own checks, then placed like any
// candidate. Moves nothing.
import { join } from 'node:path';
import { orUndefined } from '../../core/errors.js';
import { placeCandidate } from '../activation/place.js';
import { checkOnce } from '../checks/check-candidate.js';
import type { ActivePolicy } from '../generations/generation-contents.js';
import { readBundles } from '../generations/generation-contents.js';
import { listGenerations, readGeneration, reserveGeneration } from '../generations/generations.js';
import { bundleBefore } from '../job/cycle-result.js';
import type { Job } from '../job/job.js';
import type { Selection } from '../select/selection.js';
import { isSettled } from '../settled/settled-ledger.js';
import type { Host } from '../state/host.js';
import { findSettledPolicy, type PolicyBundles } from './settled-policy.js';

export interface PlacedPolicy {
  readonly generation: number;
  readonly bundles: PolicyBundles;
}

/**
 * For a rollback: the active policy with each release that has not settled replaced by the newest one that has.
 * @returns undefined where everything active has settled, or nothing settled may come back
 */
export async function settledTarget(
  job: Pick<Job, 'host' | 'area'>,
  active: ActivePolicy,
): Promise<ActivePolicy | undefined> {
  const { host } = job;
  const leaving = unsettledIn(host, active);
  if (leaving.length === 0) return undefined;
  const bundles = await findSettledPolicy(host, active, leaving);
  return bundles && settledGeneration(job, active, bundles);
}

/** @returns a generation with these bundles, made where none is kept; undefined where a check does not accept it */
export async function settledGeneration(
  job: Pick<Job, 'host' | 'area'>,
  active: ActivePolicy,
  bundles: PolicyBundles,
): Promise<ActivePolicy | undefined> {
  const { host } = job;
  const number = keptGeneration(host, bundles) ?? (await placeSettled(job, active, bundles))?.generation;
  if (number === undefined) return undefined;
  const generation = readGeneration(host.paths, number);
  return { generation, bundles: readBundles(host.paths, generation) };
}

function unsettledIn(host: Host, active: ActivePolicy): string[] {
  const ledger = host.ledger.read();
  return [...active.bundles].flatMap(([bundle, { record }]) => {
    const { serial, manifest } = record.release;
    return isSettled(ledger, bundle, { serial, manifestDigest: manifest.digest }) ? [] : [bundle];
  });
}

/** @returns the newest generation on disk with exactly these trees */
function keptGeneration({ paths }: Host, bundles: PolicyBundles): number | undefined {
  return [...listGenerations(paths)].reverse().find((number) => {
    const entries = orUndefined(() => readGeneration(paths, number))?.entries;
    if (entries?.length !== bundles.size) return false;
    return entries.every(({ bundle, treePath }) => bundles.get(bundle)?.entry.treePath === treePath);
  });
}

/** @returns the policy as a generation on disk, with a number of its own; undefined where a check does not accept it */
export async function placeSettled(
  job: Pick<Job, 'host' | 'area'>,
  active: ActivePolicy,
  bundles: PolicyBundles,
): Promise<PlacedPolicy | undefined> {
  const { host, area } = job;
  const { generation } = reserveGeneration(host);
  const staging = area.directory(String(generation));
  if (!(await isAcceptedByChecks(job, { active, bundles, generation, staging }))) return undefined;
  const candidate = [...bundles].flatMap(([name, { entry }]) => {
    const selection = keptSelection(host, name, bundles);
    return selection === undefined ? [] : [{ selection, treePath: entry.treePath }];
  });
  await placeCandidate(host, candidate, { staging, generation });
  return { generation, bundles };
}

/** A bundle that is no longer configured leaves the policy with this generation, as with any other. */
function keptSelection(host: Host, name: string, bundles: PolicyBundles): Selection | undefined {
  const bundle = host.config.bundles.find((one) => one.name === name);
  const release = bundles.get(name)?.record.release;
  if (bundle === undefined || release === undefined) return undefined;
  return { kind: 'keep', bundle, result: bundleBefore(release, release.serial) };
}

/** The consumer's own checks judge the combination: it may be one that never was active. */
export async function isAcceptedByChecks(
  { host }: Pick<Job, 'host'>,
  {
    active,
    bundles,
    generation,
    staging,
  }: {
    readonly active: ActivePolicy;
    readonly bundles: PolicyBundles;
    readonly generation: number;
    readonly staging: string;
  },
): Promise<boolean> {
  const selections = [...bundles.keys()].flatMap((name) => keptSelection(host, name, bundles) ?? []);
  const { reports } = await checkOnce(
    host,
    selections,
    {
      ...{ staging, generation, mtimeSeconds: 0, signal: new AbortController().signal },
      ...{ staged: new Map(), active: bundles, current: active.generation, prefer: 'retained' },
    },
    join(staging, 'candidate-0'),
  );
  const against = reports.filter(({ verdict: { kind } }) => kind !== 'ok' && kind !== 'warned');
  if (against.length > 0)
    host.log.warn({ generation, against }, 'a check does not accept what could be restored');
  return against.length === 0;
}
