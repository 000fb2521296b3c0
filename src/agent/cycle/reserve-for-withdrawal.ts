// A withdrawal on a full disk: it may use up the reserve, as every way back. Only a refresh shows that there is one, so a refresh
// may use it too, and the reserve is made again at once where the publisher withdrew nothing.
import { withdraws } from '../../core/release/withdrawn.js';
import { readFreeSpace } from '../../platform/disk/disk-room.js';
import type { ActivePolicy } from '../generations/generation-contents.js';
import { type Selection, taken } from '../select/selection.js';
import type { Host } from '../state/host.js';
import { reserveBytes } from '../state/reserve-file.js';
import { freeReserve, remakeReserve } from '../state/restore-memory.js';

/** An inode for each link and directory of a generation, and some for files that are replaced. */
const leastInodes = 64;

/** Frees the reserve for a withdrawal that has less space than it gives; else makes it again where it is gone. */
export function spareForWithdrawal(
  host: Host,
  active: ActivePolicy | undefined,
  selected: readonly Selection[],
): void {
  const isWithdrawal = taken(selected).some(({ bundle, target }) =>
    withdraws(target.release, active?.bundles.get(bundle.name)?.record.release),
  );
  if (!isWithdrawal) {
    if (host.restoreMemory.reserveError !== undefined) remakeReserve(host);
    return;
  }
  const { bytes, inodes } = readFreeSpace(host.paths.state);
  if (bytes < reserveBytes || inodes < leastInodes) freeReserve(host);
}
