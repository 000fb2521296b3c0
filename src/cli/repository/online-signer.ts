// What `writ serve --keys` gives to the server: the two online keys, behind one verb; opened at the start, and again
// when a new root lists others. The server itself never sees a key, a directory of keys or the publisher.

import { isWritError } from '../../core/errors.js';
import type { OnlineRole } from '../../core/tuf/tuf-metadata.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import { askClockSync } from '../../platform/process/clock-sync.js';
import type { Clock } from '../../platform/time/clock.js';
import type { KeyDirectory } from '../../publisher/keys/key-directory.js';
import { ignoredHint, ignoredText } from '../../publisher/repository/ignored-file.js';
import { createSnapshotMemory } from '../../publisher/repository/settled-snapshots.js';
import { openOnlineSigners } from '../../publisher/signing/online-signing.js';
import { resignDueRoles } from '../../publisher/signing/resign-online.js';
import type { ClockCheck } from '../../publisher/signing/signing-time.js';
import { findWriteObstacle } from '../../publisher/upkeep/resign-obstacle.js';
import type { OnlineSigner, RefusedFile } from '../../server/resign/resigner.js';

/**
 * @param keys of this directory only the files of snapshot and timestamp, and the publisher's copy of the root,
 *   are opened
 * @param ask whether the clock is kept right; for its test
 * @throws WritError KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_NEEDED, PASSPHRASE_WRONG, REPOSITORY_INVALID
 */
export async function createOnlineSigner(
  repository: string,
  keys: KeyDirectory,
  clock: Clock,
  ask: ClockCheck['ask'] = askClockSync,
): Promise<OnlineSigner> {
  let signers = await openOnlineSigners(repository, keys);
  const durableFs = createDurableFs();
  const snapshotMemory = createSnapshotMemory();
  const resign = async (
    roles: readonly OnlineRole[],
    isDueByTime: boolean,
  ): Promise<readonly RefusedFile[]> => {
    const ignored = await resignDueRoles({
      repository,
      signers,
      roles,
      isDueByTime,
      keysDirectory: keys.path,
      clock,
      durableFs,
      snapshotMemory,
      // A server never says by itself that its clock is right.
      clockCheck: { ask: () => ask() },
      holder: 'serve',
      // Not waited for: when the other writer is done, there may be nothing left to sign.
      lockWaitMs: 0,
    });
    return ignored.map((file) => ({ name: file.name, text: `${ignoredText(file)}. ${ignoredHint(file)}` }));
  };
  return {
    obstacle: () => findWriteObstacle(repository),
    resign: async (roles, isDueByTime) => {
      try {
        return await resign(roles, isDueByTime);
      } catch (error) {
        if (!isWritError(error) || error.code !== 'KEYS_MISSING') throw error;
        // A new root lists other keys: those may be beside the old ones already.
        signers = await openOnlineSigners(repository, keys);
        return resign(roles, isDueByTime);
      }
    },
  };
}
