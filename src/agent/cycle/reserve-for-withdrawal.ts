// The reserve file for a withdrawal on a full disk, which may use it up as each restore may. Only a refresh shows a withdrawal,
// so a refresh may use it too. The reserve is created again at once if the publisher withdrew nothing.
import { withdraws } from '../../core/release/withdrawn.js';
import { readFreeSpace } from '../../platform/disk/free-space.js';
import type { ActivePolicy } from '../generations/generation-contents.js';
import { type Selection, taken } from '../select/selection.js';
import type { Host } from '../state/host.js';
import { reserveBytes } from '../state/reserve-file.js';
import { freeReserve, remakeReserve } from '../state/restore-memory.js';

/** Inodes for the links and directories of a generation, and for replaced files. */
const leastInodes = 64;

/** Frees the reserve file if a withdrawal has less free space than that. Without a withdrawal, restores a missing one. */
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
