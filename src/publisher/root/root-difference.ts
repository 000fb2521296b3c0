// Compares a next root with its base: the changes, and the keys that each role would have. Uses only the signed parts,
// never a text that came with them. A key of the base keeps the name that it has there. Pure.
import { type RootSigned, type TopLevelRole, topLevelRoles } from '../../core/tuf/tuf-metadata.js';
import { nameOfKey, signersOf } from '../keys/signer-names.js';
import { readValidityPeriods } from '../repository/metadata-content.js';

export interface NamedKey {
  readonly keyId: string;
  readonly name: string;
}

export type RootDifference = ReturnType<typeof compareRoots>;
export type RoleDifference = ReturnType<typeof compareRole>;

/** @returns the facts that a person must see before signing `next`: versions, keys, thresholds, validity periods, names */
export function compareRoots(base: RootSigned, next: RootSigned) {
  return {
    version: { before: base.version, after: next.version },
    expires: next.expires,
    roles: topLevelRoles.map((role) => compareRole(base, next, role)),
    lives: topLevelRoles
      .map((role) => ({
        role,
        beforeMs: readValidityPeriods(base)[role],
        afterMs: readValidityPeriods(next)[role],
      }))
      .filter(({ beforeMs, afterMs }) => beforeMs !== afterMs),
    renamed: renamedKeys(base, next),
  };
}

function compareRole(base: RootSigned, next: RootSigned, role: TopLevelRole) {
  const before = base.roles[role];
  const after = next.roles[role];
  const named = (keyId: string): NamedKey => ({ keyId, name: nameIn(base, next, keyId) });
  return {
    role,
    added: after.keyids.filter((id) => !before.keyids.includes(id)).map(named),
    removed: before.keyids.filter((id) => !after.keyids.includes(id)).map(named),
    kept: after.keyids.filter((id) => before.keyids.includes(id)).map(named),
    threshold: { before: before.threshold, after: after.threshold },
  };
}

/** @returns the name of a key of either root; the name in the base takes precedence */
export function nameIn(base: RootSigned, next: RootSigned, keyId: string): string {
  return signersOf(base).get(keyId) ?? nameOfKey(next, keyId);
}

/** Lists known keys with another name in the new root. They are shown under their old name. */
function renamedKeys(base: RootSigned, next: RootSigned) {
  const after = signersOf(next);
  return [...signersOf(base)].flatMap(([keyId, name]) => {
    const other = after.get(keyId);
    return other === undefined || other === name ? [] : [{ keyId, before: name, after: other }];
  });
}
