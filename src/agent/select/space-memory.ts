// Remembers which release found the disk too small, and how much it needs: it is not fetched again before there is
// that much. Kept in the ledger by bundle; `--force` and another release try at once. Never a refusal of the release.
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import { isWritError, type WritError } from '../../core/errors.js';
import { hasGrown } from '../../core/release/disk-space.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { noRoom, readFreeSpace } from '../../platform/disk/disk-room.js';
import type { Host } from '../state/host.js';
import { ledgerSection, type SpaceNeed } from '../state/ledger.js';

const changeNeeds = ledgerSection('spaceNeeded');

/** @returns what keeps the release from being fetched, while the disk has not grown to what it needs */
export function judgeSpace(
  host: Host,
  { bundle, serial }: Pick<ReleaseInfo, 'bundle' | 'serial'>,
): WritError | undefined {
  const need = host.ledger.read().spaceNeeded?.[bundle];
  if (need === undefined || need.serial !== serial) return undefined;
  const path = host.paths.staging;
  const free = readFreeSpace(path);
  if (hasGrown(need, free)) return undefined;
  const { unit, needed } = need;
  return noRoom({ unit, needed, available: free[unit] }, { path, what: `${bundle} ${serial}` });
}

/**
 * After a cycle, when its staging area is gone: keeps the needs of what still does not fit, forgets the others.
 * Never throws for the disk: it may be full, and then the next cycle finds that out by itself.
 */
export function noteSpaceNeeded(host: Host, results: ReadonlyMap<string, BundleResult>): void {
  const ledger = host.ledger.read();
  const needs = Object.fromEntries(
    host.config.bundles.flatMap(({ name }): [string, SpaceNeed][] => {
      const need = needOf(host, results.get(name), ledger.spaceNeeded?.[name]);
      return need === undefined ? [] : [[name, need]];
    }),
  );
  try {
    const spaceNeeded = Object.keys(needs).length === 0 ? undefined : needs;
    host.ledger.write(changeNeeds(ledger, { spaceNeeded }));
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.warn({ err: error }, 'the missing disk space could not be recorded');
  }
}

function needOf(
  host: Host,
  result: BundleResult | undefined,
  known: SpaceNeed | undefined,
): SpaceNeed | undefined {
  // Nothing was said of it in this cycle, as when the server could not be reached.
  if (result === undefined) return known;
  if (result.problem?.code !== 'DISK_FULL') return undefined;
  const { needed, unit } = result.problem.facts;
  const serial = result.toSerial;
  if (serial === undefined || typeof needed !== 'number' || !isUnit(unit)) return known;
  // Said from memory again: nothing new to write.
  if (known?.serial === serial && known.needed === needed && known.unit === unit) return known;
  return { serial, unit, needed, atMs: host.clock.nowMs() };
}

function isUnit(value: unknown): value is SpaceNeed['unit'] {
  return value === 'bytes' || value === 'inodes';
}
