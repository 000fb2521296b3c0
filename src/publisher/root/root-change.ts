// Builds the signed part of the next root from the current root and the requested changes. Pure. root-rules judges the
// result.
import { WritError } from '../../core/errors.js';
import { type RootSigned, specVersion, type TopLevelRole } from '../../core/tuf/tuf-metadata.js';
import type { PublicKey } from '../keys/public-key.js';
import { shortKeyId, signersOf } from '../keys/signer-names.js';
import {
  isoSeconds,
  perRole,
  readValidityPeriods,
  type ValidityPeriods,
  type WithWrit,
} from '../repository/metadata-content.js';

/** The requested changes. Without any, the root is re-signed: a new version with a new validity period. */
export interface RootChange {
  readonly add: readonly { readonly role: TopLevelRole; readonly key: PublicKey }[];
  /** `which` is the name in the root, or at least eight digits of the key id. */
  readonly remove: readonly { readonly role: TopLevelRole; readonly which: string }[];
  /** The keys that replace all keys of the role. */
  readonly replace: readonly { readonly role: TopLevelRole; readonly keys: readonly PublicKey[] }[];
  readonly thresholds: Partial<Readonly<Record<TopLevelRole, number>>>;
  readonly validity: Partial<ValidityPeriods>;
}

export const noChange: RootChange = { add: [], remove: [], replace: [], thresholds: {}, validity: {} };

/**
 * @returns the signed part of the next root; members of the base other than keys and roles are kept
 * @throws WritError ROOT_CHANGE_REFUSED for an unknown key to remove, or a present key to add
 */
export function changeRoot(base: RootSigned, change: RootChange, nowMs: number): WithWrit<RootSigned> {
  const names = new Map(signersOf(base));
  const after = perRole((role) => keysAfter(base, change, { role, names }));
  const keys = Object.fromEntries(Object.values(after).flatMap((held) => [...held]));
  const validity = { ...readValidityPeriods(base), ...change.validity };
  const { writ } = base as RootSigned & { readonly writ?: object };
  const signers = Object.fromEntries([...names].filter(([id]) => Object.hasOwn(keys, id)));
  return {
    ...base,
    spec_version: specVersion,
    version: base.version + 1,
    expires: isoSeconds(nowMs + validity.root),
    keys,
    roles: perRole((role) => {
      const threshold = change.thresholds[role] ?? base.roles[role].threshold;
      return { keyids: [...after[role].keys()], threshold };
    }),
    writ: { ...writ, signedAt: isoSeconds(nowMs), livesMs: validity, signers },
  };
}

/** @param names receives the names of the new keys */
function keysAfter(
  base: RootSigned,
  change: RootChange,
  { role, names }: { readonly role: TopLevelRole; readonly names: Map<string, string> },
): ReadonlyMap<string, RootSigned['keys'][string]> {
  const listed = base.roles[role].keyids.flatMap((id) => {
    const key = base.keys[id];
    return key === undefined ? [] : [[id, key] as const];
  });
  const replacement = change.replace.find((one) => one.role === role);
  const held = new Map(replacement === undefined ? listed : []);
  for (const { which } of change.remove.filter((one) => one.role === role)) {
    held.delete(findKey(base, role, which));
  }
  const added = change.add.filter((one) => one.role === role).map(({ key }) => key);
  for (const { keyId, key, name } of [...(replacement?.keys ?? []), ...added]) {
    if (held.has(keyId))
      throw refused(`${name} (${shortKeyId(keyId)}) is already a key of ${role}`, { role });
    held.set(keyId, key);
    names.set(keyId, name);
  }
  return held;
}

function findKey(base: RootSigned, role: TopLevelRole, which: string): string {
  const names = signersOf(base);
  const { keyids } = base.roles[role];
  const isPrefix = /^[0-9a-f]{8,64}$/i.test(which);
  const found = keyids.filter((id) => {
    return names.get(id) === which || (isPrefix && id.startsWith(which.toLowerCase()));
  });
  const [id, ...more] = found;
  if (id !== undefined && more.length === 0) return id;
  const known = keyids.map((one) => `${names.get(one) ?? '?'} (${shortKeyId(one)})`).join(', ');
  const text = id === undefined ? `is not a key of ${role}` : `is more than one key of ${role}`;
  throw refused(`${which.slice(0, 64)} ${text}; its keys are ${known}`, { role, keyIds: keyids });
}

function refused(message: string, facts: Readonly<Record<string, unknown>>): WritError {
  return new WritError('ROOT_CHANGE_REFUSED', message, {
    facts,
    hint: 'See `writ key list`, or give the key id.',
  });
}
