// `writ verify`: scans the active generation and the backups, and repairs them on request. Reports the final state, and only of files
// that it has read.
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
import { type ScrubResult, scrub } from './scrub.js';

export interface VerifyOptions {
  /** Called at each use, because a reload may replace the host. */
  readonly host: () => Host;
  readonly repair: 'yes' | 'no';
  readonly by: string;
  readonly signal: AbortSignal;
  readonly onEvent: (event: CycleEventLine) => void;
  readonly exclusive: Exclusive;
  /** Called with the result of the scrub of the active generation. */
  readonly onScan?: (scan: ScrubResult) => void;
}

/** @returns the result of `writ verify`. @throws WritError INTERRUPTED, DISK_*, STATE_DAMAGED if the scan itself is impossible */
export async function verifyPolicy(options: VerifyOptions): Promise<VerifyResult> {
  const { host } = options;
  const startedMs = host().clock.monotonicMs();
  const scan = await scrub(host, {
    ...options,
    cycle: newCycleId(),
    contents: 'digests',
    pace: unboundedPace(options.signal),
    download: 'yes',
  });
  options.onScan?.(scan);
  const backups = await verifyBackups(host, options);
  const active = await activeInTheEnd(host(), scan, options);
  const generations = [...active, ...backups.generations];
  const untrusted = findUntrusted(host());
  const isWhole = generations.every((one) => one.damage.length === 0) && !untrusted.some((one) => one.active);
  const found = [...scan.damage, ...backups.found];
  return {
    schema: 1,
    type: 'verify.result',
    outcome: generations.length === 0 ? 'empty' : outcomeOf(isWhole, found),
    exitCode: isWhole ? 0 : 1,
    generations,
    found: shownOf(found),
    untrusted,
    ...repairOf(scan),
    ...(backups.unrepaired.length === 0 ? {} : { unrepaired: backups.unrepaired }),
    durationMs: Math.round(host().clock.monotonicMs() - startedMs),
  };
}

/** Bounds the list, because a longer answer would lose a whole generation: the damaged one. */
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

function repairOf({ repair }: ScrubResult): { repair?: CycleResult } {
  return repair === undefined ? {} : { repair: repair.result };
}

/** Scans again after a repair, so that only a tree that was read is reported as complete. */
async function activeInTheEnd(
  host: Host,
  scan: ScrubResult,
  { signal }: VerifyOptions,
): Promise<VerifiedGeneration[]> {
  const generation = wantedGeneration(host);
  if (generation === undefined) return [];
  if (scan.repair === undefined) return [described(generation, 'active', scan.damage)];
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
    // Scanned again even under the same number, which it keeps if only retained files were damaged.
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
