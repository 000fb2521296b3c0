// The order of a start, for the agent and for a command without one: recover, make sure that the active generation is
// what its records say, run the loaders of a new boot, then be ready. Decides nothing itself.
import * as fs from 'node:fs';
import type { Problem } from '../core/cycle-report.js';
import { toWritError, type WritError } from '../core/errors.js';
import { retryNow } from '../core/refusals.js';
import { readBootId } from '../platform/boot-id.js';
import { readActivePolicy } from './active-bundles.js';
import { findDamage } from './compare-active.js';
import { activeGenerationNumber } from './generations.js';
import type { Host } from './host.js';
import { loadAtBoot } from './load-at-boot.js';
import { sayNotices } from './notices.js';
import { type RecoveryOptions, recoverHost } from './recover-host.js';
import { readStatusFile } from './status-file.js';
import type { CycleEnd } from './sync-cycle.js';
import { createWholeCheck, damagedTree, type WholeCheck } from './whole-generations.js';

export interface Started {
  /** The end of the unfinished cycle, if there was one. */
  readonly recovered: CycleEnd | undefined;
  /** Of the active generation. */
  readonly damage: WritError | undefined;
  /** What was mended in the state directory: said in log and history already. */
  readonly notices: readonly Problem[];
  /** Why a loader is still due. */
  readonly notLoaded: Problem | undefined;
}

/**
 * All that a start does before the first cycle, for the agent and for a command without one: mend the state files,
 * finish or undo what a crash left, make sure that the active generation is whole, and run the loaders of a new boot.
 */
export async function startHost(host: Host, options: Omit<RecoveryOptions, 'whole'>): Promise<Started> {
  const end = howItEnded(host);
  const whole = createWholeCheck(host);
  const recovered = await recoverHost(host, { ...options, whole });
  const notices = sayNotices(host);
  const bootId = readBootId();
  if (host.ledger.read().verifiedBootId !== bootId) retryRefusals(host);
  const damage = await damageOfActive(host, { bootId, end, whole });
  const notLoaded = damage === undefined ? await loadAtBoot(host, options) : undefined;
  return { recovered, damage, notices, notLoaded };
}

interface Look {
  readonly bootId: string;
  readonly end: 'clean' | 'unclean';
  readonly whole: WholeCheck;
}

/** @returns what is wrong with the active generation (STATE_DAMAGED, DISK_*); undefined when it is whole */
async function damageOfActive(host: Host, look: Look): Promise<WritError | undefined> {
  try {
    await verifyActive(host, look);
    return undefined;
  } catch (error) {
    host.log.error({ err: error }, 'the active generation is damaged');
    return toWritError(error);
  }
}

/**
 * A zero exit of `sync -f` can hide an error that another process consumed: after a boot or an unclean end the
 * active trees are read in full before the agent is ready; after a clean one, names, types, sizes and modes do.
 * @throws WritError STATE_DAMAGED naming the bundle and its files
 */
async function verifyActive(host: Host, { bootId, end, whole }: Look): Promise<void> {
  const active = activeGenerationNumber(host.paths);
  const ledger = host.ledger.read();
  if (end === 'unclean' || ledger.verifiedBootId !== bootId) {
    const damage = active === undefined ? undefined : await whole.damageOf(active);
    if (damage !== undefined) throw damage;
    if (ledger.verifiedBootId !== bootId) host.ledger.write({ ...ledger, verifiedBootId: bootId });
    return;
  }
  const [damage] = await findDamage(host, readActivePolicy(host.paths), 'sizes');
  if (active !== undefined && damage !== undefined) throw damagedTree(active, damage);
}

/** A crash leaves a staging area, a journal, or a status that never came to `stop`, or cannot be read. */
function howItEnded(host: Host): 'clean' | 'unclean' {
  const { paths } = host;
  const left = fs.readdirSync(paths.staging).length > 0 || fs.existsSync(paths.journal);
  const status = readStatusFile(paths);
  const isOver = status === undefined ? !fs.existsSync(paths.status) : status.agent === 'stop';
  return left || !isOver ? 'unclean' : 'clean';
}

/** What was refused is tried again at once: after a boot, and after a change of the configuration. */
export function retryRefusals(host: Host): void {
  const known = host.refusals.read();
  if (known.refusals.length > 0) host.refusals.write({ ...known, refusals: retryNow(known.refusals) });
}
