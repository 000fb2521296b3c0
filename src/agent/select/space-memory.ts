// Remembers which release found the disk too small, and how much it needs: it is not fetched again before there is
// that much. Kept in the ledger by bundle; `--force` and another release try at once. Never a refusal of the release.
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import { isWritError, type WritError } from '../../core/errors.js';
import { isNowFree } from '../../core/release/disk-space.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { diskFullError, readFreeSpace } from '../../platform/disk/free-space.js';
import type { Host } from '../state/host.js';
import { ledgerSection, type SpaceNeed } from '../state/ledger.js';

const changeNeeds = ledgerSection('spaceNeeded');

/** @returns the error of a release that is not downloaded, while the disk has less free space than it needs; else undefined */
export function judgeSpace(
  host: Host,
  { bundle, serial }: Pick<ReleaseInfo, 'bundle' | 'serial'>,
): WritError | undefined {
  const need = host.ledger.read().spaceNeeded?.[bundle];
  if (need === undefined || need.serial !== serial) return undefined;
  const path = host.paths.staging;
  const free = readFreeSpace(path);
  if (isNowFree(need, free)) return undefined;
  const { unit, needed } = need;
  return diskFullError({ unit, needed, available: free[unit] }, { path, what: `${bundle} ${serial}` });
}

/**
 * After a cycle and the removal of its staging area: keeps the needs of releases that still do not fit, and removes the others.
 * Never throws for the disk: it may be full, and the next cycle finds that by itself.
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
  // The cycle has no result for the bundle, for example because the server could not be reached.
  if (result === undefined) return known;
  if (result.problem?.code !== 'DISK_FULL') return undefined;
  const { needed, unit } = result.problem.facts;
  const serial = result.toSerial;
  if (serial === undefined || typeof needed !== 'number' || !isUnit(unit)) return known;
  // Nothing has changed since the entry was written.
  if (known?.serial === serial && known.needed === needed && known.unit === unit) return known;
  return { serial, unit, needed, atMs: host.clock.nowMs() };
}

function isUnit(value: unknown): value is SpaceNeed['unit'] {
  return value === 'bytes' || value === 'inodes';
}
