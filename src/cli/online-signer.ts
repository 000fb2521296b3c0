// What `writ serve --keys` gives to the server: the two online keys, opened once, behind one verb. The server
// itself never sees a key, a directory of keys or the publisher.
import type { Clock } from '../platform/clock.js';
import { createDurableFs } from '../platform/durable-fs.js';
import type { KeyDirectory } from '../publisher/key-directory.js';
import { openOnlineSigners, resignOnline } from '../publisher/online-signing.js';
import type { OnlineSigner } from '../server/resigner.js';

/**
 * @param keys of this directory only the files of snapshot and timestamp, and the publisher's copy of the root,
 *   are opened
 * @throws WritError KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_NEEDED, PASSPHRASE_WRONG, REPOSITORY_INVALID
 */
export async function createOnlineSigner(
  repository: string,
  keys: KeyDirectory,
  clock: Clock,
): Promise<OnlineSigner> {
  const signers = await openOnlineSigners(repository, keys);
  const durableFs = createDurableFs();
  return {
    resign: async (roles) => {
      const keysDirectory = keys.path;
      await resignOnline({
        repository,
        signers,
        roles,
        keysDirectory,
        clock,
        durableFs,
        holder: 'serve',
        // Not waited for: when the other writer is done, there may be nothing left to sign.
        lockWaitMs: 0,
      });
    },
  };
}
