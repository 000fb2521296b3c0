// The signer of `writ serve --keys`: opens the two online keys at the start, and again when a new root lists other keys.
// The server itself has no access to keys, key directories or publisher code.

import { isWritError } from '../../core/errors.js';
import type { OnlineRole } from '../../core/tuf/tuf-metadata.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import { askClockSync } from '../../platform/process/clock-sync.js';
import type { Clock } from '../../platform/time/clock.js';
import type { KeyDirectory } from '../../publisher/keys/key-directory.js';
import { ignoredHint, ignoredText } from '../../publisher/repository/ignored-file.js';
import { createSnapshotMemory } from '../../publisher/repository/snapshot-memory.js';
import { openOnlineSigners } from '../../publisher/signing/online-signing.js';
import { resignDueRoles } from '../../publisher/signing/resign-online.js';
import type { ClockCheck } from '../../publisher/signing/signing-time.js';
import { findWriteObstacle } from '../../publisher/upkeep/resign-obstacle.js';
import type { OnlineSigner, RefusedFile } from '../../server/resign/resigner.js';

/**
 * Opens the keys of snapshot and timestamp, for a server that re-signs both. Signs nothing yet.
 * @param keys only the files of snapshot and timestamp, and the publisher's copy of the root, are opened in this directory
 * @param ask asks whether the clock is synchronised; replaced in tests
 * @returns the signer. `resign` does not wait for another writer (REPOSITORY_LOCKED). After KEYS_MISSING it opens the keys of
 *   the directory once more, because a new root can list other keys
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
      // A server never confirms its own clock.
      clockCheck: { ask: () => ask() },
      holder: 'serve',
      // Does not wait for another writer, because no signature may be needed after it.
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
        // A new root lists other keys, which may already be in the directory.
        signers = await openOnlineSigners(repository, keys);
        return resign(roles, isDueByTime);
      }
    },
  };
}
