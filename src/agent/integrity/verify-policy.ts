// `writ verify`: looks over everything that this host relies on, the active generation and what a rollback could go to,
// and with a repair asked for repairs it. Says how it is in the end, and never more than it has read.
import type { CycleEventLine, CycleResult } from '../../core/cycle/cycle-report.js';
import type { DamageFound } from '../../core/status/scrub-state.js';
import type {
  UnrepairedBackup,
  VerifiedGeneration,
  VerifiedRole,
  VerifyResult,
} from '../../core/status/verify-report.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import { examineGeneration, listDamage } from '../generations/examine.js';
import { findUntrusted } from '../generations/untrusted-releases.js';
import type { Exclusive } from '../job/exclusive.js';
import { newCycleId } from '../job/progress.js';
import type { Host } from '../state/host.js';
import { examineActive, wantedGeneration } from './examine-active.js';
import { repairBackup } from './repair-backup.js';
import { type Look, scrub } from './scrub.js';

export interface VerifyOptions {
  /** Asked each time: a reload may have replaced it. */
  readonly host: () => Host;
  readonly repair: 'yes' | 'no';
  readonly by: string;
  readonly signal: AbortSignal;
  readonly onEvent: (event: CycleEventLine) => void;
  readonly exclusive: Exclusive;
  /** Told what the look over the active policy found, and did. */
  readonly onLook?: (look: Look) => void;
}

/** @throws WritError INTERRUPTED, DISK_*, STATE_DAMAGED when looking itself is not possible */
export async function verifyPolicy(options: VerifyOptions): Promise<VerifyResult> {
  const { host } = options;
  const startedMs = host().clock.monotonicMs();
  const look = await scrub(host, {
    ...options,
    cycle: newCycleId(),
    contents: 'digests',
    pace: unboundedPace(options.signal),
    download: 'yes',
  });
  options.onLook?.(look);
  const backups = await verifyBackups(host, options);
  const active = await activeInTheEnd(host(), look, options);
  const generations = [...active, ...backups.generations];
  const untrusted = findUntrusted(host());
  const isWhole = generations.every((one) => one.damage.length === 0) && !untrusted.some((one) => one.active);
  const found = [...look.damage, ...backups.found];
  return {
    schema: 1,
    type: 'verify.result',
    outcome: generations.length === 0 ? 'empty' : outcomeOf(isWhole, found),
    exitCode: isWhole ? 0 : 1,
    generations,
    found: shownOf(found),
    untrusted,
    ...repairOf(look),
    ...(backups.unrepaired.length === 0 ? {} : { unrepaired: backups.unrepaired }),
    durationMs: Math.round(host().clock.monotonicMs() - startedMs),
  };
}

/** Nobody reads a thousand lines of it; and of an answer that is too long a whole generation, the damaged one, is cut off. */
const maxShown = 200;
const maxShownBytes = 12_000;

function shownOf(damage: readonly DamageFound[]): DamageFound[] {
  let bytes = 0;
  return damage.slice(0, maxShown).filter((one) => {
    bytes += Buffer.byteLength(JSON.stringify(one));
    return bytes <= maxShownBytes;
  });
}

function outcomeOf(isWhole: boolean, found: readonly DamageFound[]): VerifyResult['outcome'] {
  if (!isWhole) return 'damaged';
  return found.length > 0 ? 'repaired' : 'intact';
}

function repairOf({ repair }: Look): { repair?: CycleResult } {
  return repair === undefined ? {} : { repair: repair.result };
}

/** After a repair it is read again: only what was seen to be complete is said to be. */
async function activeInTheEnd(
  host: Host,
  look: Look,
  { signal }: VerifyOptions,
): Promise<VerifiedGeneration[]> {
  const generation = wantedGeneration(host);
  if (generation === undefined) return [];
  if (look.repair === undefined) return [described(generation, 'active', look.damage)];
  const again = await examineActive(host, { contents: 'digests', pace: unboundedPace(signal) });
  return [described(generation, 'active', again?.damage ?? [])];
}

function described(
  generation: number,
  role: VerifiedRole,
  damage: readonly DamageFound[],
): VerifiedGeneration {
  return { generation, role, damage: shownOf(damage) };
}

interface Backups {
  readonly generations: readonly VerifiedGeneration[];
  readonly found: readonly DamageFound[];
  readonly unrepaired: readonly UnrepairedBackup[];
}

async function verifyBackups(host: () => Host, options: VerifyOptions): Promise<Backups> {
  const generations: VerifiedGeneration[] = [];
  const found: DamageFound[] = [];
  const unrepaired: UnrepairedBackup[] = [];
  const examine = async (number: number): Promise<DamageFound[]> =>
    listDamage(
      await examineGeneration(host(), number, { contents: 'digests', pace: unboundedPace(options.signal) }),
    );
  for (const { number, role } of backupsOf(host())) {
    const damage = await examine(number);
    found.push(...damage);
    if (damage.length === 0 || options.repair === 'no') {
      generations.push(described(number, role, damage));
      continue;
    }
    const end = await options.exclusive((onEvent) =>
      repairBackup(host(), number, { signal: options.signal, onEvent }),
    );
    if (end.kind !== 'made')
      unrepaired.push({ generation: number, role, end: end.kind, problem: end.problem });
    // Under the same number where only what is kept of it was damaged: read again in any case.
    if (end.kind !== 'given-up')
      generations.push(described(end.generation, role, await examine(end.generation)));
  }
  return { generations, found, unrepaired };
}

function backupsOf(host: Host): { number: number; role: UnrepairedBackup['role'] }[] {
  const { previous, lastKnownGood } = host.ledger.read();
  const active = wantedGeneration(host);
  const all = [
    { number: previous, role: 'previous' },
    { number: lastKnownGood, role: 'last-known-good' },
  ] as const;
  return all.flatMap(({ number, role }) =>
    number === undefined || number === active || (role !== 'previous' && number === previous)
      ? []
      : [{ number, role }],
  );
}
