// Stops root from writing to a repository of another user. The owner could not open the lock file of root, and a server
// that runs as the owner could never re-sign again. Reads only.
import * as fs from 'node:fs';
import { WritError } from '../../core/errors.js';
import { asUser, userName } from '../../platform/users/user-id.js';

/** @throws WritError REPOSITORY_OWNER for root, where the directory exists and belongs to another user */
export function requireOwnRepository(path: string): void {
  const owner = fs.statSync(path, { throwIfNoEntry: false })?.uid ?? 0;
  if (process.getuid?.() !== 0 || owner === 0) return;
  const name = userName(owner);
  throw new WritError('REPOSITORY_OWNER', `${path} belongs to ${name}, and this is root`, {
    facts: { path, owner: name },
    hint: `With keys that ${name} can read: ${asUser(owner)} writ ... With keys of root: publish into a directory of root, and copy it as ${name} (docs/server.md, "One machine publishes and serves").`,
  });
}
