// The order of a start, for the agent and for a command without one: recover, make sure that the active generation is
// what its records say, then be ready. Decides nothing itself.
import * as fs from 'node:fs';
import { toWritError, WritError } from '../core/errors.js';
import { retryNow } from '../core/refusals.js';
import { readActivePolicy } from './active-bundles.js';
import { findDamage } from './compare-active.js';
import type { Host } from './host.js';
import { type RecoveryOptions, recoverHost } from './recover-host.js';
import { readStatusFile } from './status-file.js';
import type { CycleEnd } from './sync-cycle.js';

/**
 * All that a start does before the first cycle, for the agent and for a command without one: finish or undo what a
 * crash left, and at the first start after a boot retry refusals and read the active trees in full.
 * @returns the end of the unfinished cycle, if there was one, and damage that was found
 */
export async function startHost(
  host: Host,
  options: RecoveryOptions,
): Promise<{ recovered: CycleEnd | undefined; damage: WritError | undefined }> {
  const end = howItEnded(host);
  const recovered = await recoverHost(host, options);
  const bootId = readBootId();
  if (host.ledger.read().verifiedBootId !== bootId) retryRefusals(host);
  try {
    await verifyActive(host, { bootId, end });
    return { recovered, damage: undefined };
  } catch (error) {
    host.log.error({ err: error }, 'the active generation is damaged');
    return { recovered, damage: toWritError(error) };
  }
}

/**
 * A zero exit of `sync -f` can hide an error that another process consumed: after a boot or an unclean end the
 * active trees are read in full before the agent is ready; after a clean one, names, types, sizes and modes do.
 * @throws WritError STATE_DAMAGED naming the bundle and its files
 */
async function verifyActive(
  host: Host,
  options: { bootId: string; end: 'clean' | 'unclean' },
): Promise<void> {
  const { bootId, end } = options;
  const full = end === 'unclean' || host.ledger.read().verifiedBootId !== bootId;
  const [damage] = await findDamage(host, readActivePolicy(host.paths), full ? 'digests' : 'sizes');
  if (damage !== undefined) {
    throw new WritError('STATE_DAMAGED', `the active tree of ${damage.bundle} is not what was published`, {
      facts: { bundle: damage.bundle, problems: damage.problems.slice(0, 20) },
      hint: 'Run `writ pull --force`: it fetches the policy again and makes a new generation.',
    });
  }
  const ledger = host.ledger.read();
  if (ledger.verifiedBootId !== bootId) host.ledger.write({ ...ledger, verifiedBootId: bootId });
}

/** A crash leaves a staging area, a journal, or a status that never came to `stop`. */
function howItEnded(host: Host): 'clean' | 'unclean' {
  const { paths } = host;
  const left = fs.readdirSync(paths.staging).length > 0 || fs.existsSync(paths.journal);
  const agent = readStatusFile(paths)?.agent ?? 'stop';
  return left || agent !== 'stop' ? 'unclean' : 'clean';
}

/** What was refused is tried again at once: after a boot, and after a change of the configuration. */
export function retryRefusals(host: Host): void {
  const known = host.refusals.read();
  if (known.refusals.length > 0) host.refusals.write({ ...known, refusals: retryNow(known.refusals) });
}

/** @returns the kernel's id of this boot */
export function readBootId(path = '/proc/sys/kernel/random/boot_id'): string {
  return fs.readFileSync(path, 'utf8').trim();
}
