// Describes the keys in a directory: their names, and the roles that a root and its delegations give them. Reads only;
// opens no secret.
import { join } from 'node:path';
import { isWritError } from '../../core/errors.js';
import { topLevelRoles } from '../../core/tuf/tuf-metadata.js';
import { keyFilesIn, keyIdOfFile } from '../keys/key-directory.js';
import { readKeyFile } from '../keys/key-file.js';
import { signersOf } from '../keys/signer-names.js';
import { delegatedRolesOf } from '../repository/delegated-files.js';
import { layoutOf } from '../repository/repository-layout.js';
import { readRepositoryState, readRoots } from '../repository/repository-state.js';

export type KeyDescription = ReturnType<typeof describeKeys>;

/**
 * @param repository without it, the roles of each key are empty
 * @returns each key with its top-level and delegated roles by name, and the key files that cannot be read
 * @throws WritError KEY_UNREADABLE for the directory, REPOSITORY_INVALID when the roots do not verify
 */
export function describeKeys(keysDirectory: string, repository: string | undefined) {
  const holders = repository === undefined ? [] : holdersIn(repository, keysDirectory);
  const unreadable: string[] = [];
  const keys = keyFilesIn(keysDirectory).flatMap((file) => {
    const key = describe(join(keysDirectory, file), holders);
    if (key === undefined) unreadable.push(file);
    return key === undefined ? [] : [{ file, ...key }];
  });
  return { keys, unreadable };
}

/** A signed file that lists keys of roles: the root, or targets with delegations. */
interface Holders {
  readonly signed: object;
  readonly roles: readonly { readonly name: string; readonly keyids: readonly string[] }[];
}

function describe(path: string, holders: readonly Holders[]) {
  try {
    const file = readKeyFile(path);
    if (file === undefined) return undefined;
    const keyId = keyIdOfFile(file);
    const names = holders.flatMap(({ signed }) => signersOf(signed).get(keyId) ?? []);
    const roles = holders.flatMap((holder) => holder.roles.filter(({ keyids }) => keyids.includes(keyId)));
    return {
      name: names[0] ?? file.name ?? '',
      keyId,
      encrypted: file.secret.kind === 'locked',
      roles: roles.map(({ name }) => name),
    };
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

function holdersIn(repository: string, keysDirectory: string): Holders[] {
  const layout = layoutOf(repository);
  const { roots } = readRoots(layout, keysDirectory);
  const own = roots.slice(-1).map(({ signed }) => {
    return { signed, roles: topLevelRoles.map((name) => ({ name, keyids: signed.roles[name].keyids })) };
  });
  try {
    const { targets } = readRepositoryState(layout, keysDirectory);
    return [...own, { signed: targets.signed, roles: delegatedRolesOf(targets) }];
  } catch (error) {
    // The root still describes its keys where targets do not verify, for example before their signatures are complete.
    if (isWritError(error)) return own;
    throw error;
  }
}
