// Holds that the history tells of: who rolled back from which release, and why. A hold that was ended by `writ resume`
// may come back, for the history does not tell of that; a release that a person left must not come back by itself.

import { isActivation } from '../../core/cycle/sync-machine.js';
import type { HistoryEntry } from '../../core/protocol/control-protocol.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import type { Hold } from '../state/ledger.js';

export interface KnownReleases {
  readonly active: readonly ReleaseInfo[];
  /** Those whose records are kept. */
  readonly kept: readonly ReleaseInfo[];
}

/** @param history newest first */
export function rebuildHolds(history: readonly HistoryEntry[], known: KnownReleases): Hold[] {
  const holds = new Map<string, Hold>();
  for (const entry of history.filter(isRollback)) {
    for (const { bundle, fromSerial } of entry.result.bundles) {
      const left = known.kept.find((one) => one.bundle === bundle && one.serial === fromSerial);
      if (left === undefined || !isStillLeft(left, known.active)) continue;
      // A hold keeps out what is at or below its serial: the highest one covers those below it.
      if (left.serial > (holds.get(bundle)?.serial ?? 0)) holds.set(bundle, holdOn(left, entry));
    }
  }
  return [...holds.values()];
}

function isRollback({ result }: HistoryEntry): boolean {
  return result.type === 'rollback.result' && isActivation(result.outcome) && Array.isArray(result.bundles);
}

/** A release above what is active: had it come back since, it or a newer one would be active. */
function isStillLeft(left: ReleaseInfo, active: readonly ReleaseInfo[]): boolean {
  return active.some((one) => one.bundle === left.bundle && one.serial < left.serial);
}

function holdOn({ bundle, serial, manifest }: ReleaseInfo, { by, reason, result }: HistoryEntry): Hold {
  return {
    bundle,
    serial,
    manifestDigest: manifest.digest,
    by: by ?? 'unknown',
    reason: reason ?? 'no reason given',
    atMs: result.startedAtMs,
  };
}
