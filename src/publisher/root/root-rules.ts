// Judges a next root: changes that are always mistakes, and changes that need a confirmation. Applied at the proposal, by
// every signer, and before the commit, because the file in between is mailed. Pure.

import { WritError } from '../../core/errors.js';
import { canonicalJson } from '../../core/text/canonical-json.js';
import { keyId, publicKeyIdentity } from '../../core/tuf/signature-schemes.js';
import { type RootSigned, type TopLevelRole, topLevelRoles } from '../../core/tuf/tuf-metadata.js';
import { signersOf } from '../keys/signer-names.js';

/** Compares a proposed root with its base. @returns sentences without a full stop */
export function judgeRoot(base: RootSigned, next: RootSigned) {
  return {
    /** Refused always. */
    mistakes: [
      ...topLevelRoles.flatMap((role) => mistakesOfRole(next, role)),
      ...mistakesOfClasses(next),
      ...mistakesOfForm(base, next),
    ],
    /** Refused without a confirmation. */
    dangers: dangersOf(base, next),
  };
}

/** @throws WritError ROOT_CHANGE_REFUSED with every reason in its facts */
export function requireAllowedChange(
  { mistakes, dangers }: ReturnType<typeof judgeRoot>,
  { danger }: { readonly danger: 'refused' | 'accepted' },
): void {
  const reasons = [...mistakes, ...(danger === 'refused' ? dangers : [])];
  const [first] = reasons;
  if (first === undefined) return;
  throw new WritError('ROOT_CHANGE_REFUSED', first, {
    facts: { reasons },
    hint: mistakes.length > 0 ? 'Fix what the message names.' : 'If that is what you want, give --yes.',
  });
}

function mistakesOfRole(next: RootSigned, role: TopLevelRole): string[] {
  const { keyids, threshold } = next.roles[role];
  const identities = keyids.map((id) => identityOf(next, id));
  const known = identities.filter((identity) => identity !== undefined);
  const idle = keyids.filter((_id, index) => identities[index] === undefined);
  const distinct = new Set(known);
  const names = keyids.flatMap((id) => signersOf(next).get(id) ?? []);
  return [
    ...idle.map((id) => `${role} has a key that can never count, ${id.slice(0, 8)}: remove it`),
    // Attack: a program that counts key ids would count one secret as two signers.
    ...(distinct.size < known.length ? [`${role} has the same public key twice`] : []),
    ...(threshold > distinct.size
      ? [`${role} needs ${threshold} signatures and has ${distinct.size} keys: it could never be signed`]
      : []),
    ...(new Set(names).size < names.length ? [`two keys of ${role} have the same name`] : []),
  ];
}

/** @returns the identity of the public key; undefined where the id does not match the key */
function identityOf(root: RootSigned, id: string): string | undefined {
  const key = Object.hasOwn(root.keys, id) ? root.keys[id] : undefined;
  return key === undefined || keyId(key) !== id ? undefined : publicKeyIdentity(key);
}

/** Attack: a thief of a server could sign the offline roles with a key that is also online. */
function mistakesOfClasses(next: RootSigned): string[] {
  const identities = (roles: readonly TopLevelRole[]): string[] =>
    roles.flatMap((role) => next.roles[role].keyids.flatMap((id) => identityOf(next, id) ?? []));
  const offline = new Set(identities(['root', 'targets']));
  const shared = identities(['snapshot', 'timestamp']).some((identity) => offline.has(identity));
  const rootKeys = new Set(identities(['root']));
  const both = identities(['targets']).some((identity) => rootKeys.has(identity));
  return [
    ...(shared ? ['one key would be both online (snapshot, timestamp) and offline (root, targets)'] : []),
    ...(both ? ['one key would belong to both root and targets'] : []),
  ];
}

const rootMembers = new Set([
  '_type',
  'spec_version',
  'version',
  'expires',
  'consistent_snapshot',
  'keys',
  'roles',
  'writ',
]);
const ourMembers = new Set(['signedAt', 'livesMs', 'signers']);

/** Refuses members that the signers do not see in the comparison. */
function mistakesOfForm(base: RootSigned, next: RootSigned): string[] {
  const hidden = [
    ...differing(base, next, rootMembers),
    ...differing(writOf(base), writOf(next), ourMembers),
    ...differing(base.roles, next.roles, new Set(topLevelRoles)),
  ];
  const listed = new Set(topLevelRoles.flatMap((role) => next.roles[role].keyids));
  const idle = Object.keys(next.keys).filter((id) => !listed.has(id));
  return [
    ...(next.version === base.version + 1 ? [] : [`version ${next.version} does not follow ${base.version}`]),
    ...(next.consistent_snapshot === base.consistent_snapshot
      ? []
      : ['consistent snapshots would be switched']),
    ...hidden.map((name) => `it has a member that is not shown to signers, ${name.slice(0, 64)}`),
    ...(idle.length > 0 ? ['it lists a key that belongs to no role'] : []),
  ];
}

function writOf(root: RootSigned): object {
  const { writ } = root as { readonly writ?: unknown };
  return typeof writ === 'object' && writ !== null ? writ : {};
}

/** @returns names of unknown members with another value than in the base */
function differing(base: object, next: object, known: ReadonlySet<string>): string[] {
  const before = new Map<string, unknown>(Object.entries(base));
  const same = (name: string, value: unknown): boolean =>
    before.has(name) && canonicalJson(before.get(name)) === canonicalJson(value);
  return Object.entries(next)
    .filter(([name, value]) => !known.has(name) && !same(name, value))
    .map(([name]) => name);
}

function dangersOf(base: RootSigned, next: RootSigned): string[] {
  const { keyids, threshold } = next.roles.root;
  const before = base.roles.root;
  const staying = before.keyids.filter((id) => keyids.includes(id)).length;
  const leavers = before.threshold - staying;
  const lowered = topLevelRoles.filter((role) => next.roles[role].threshold < base.roles[role].threshold);
  return [
    ...(threshold === keyids.length
      ? [`with ${threshold} of ${keyids.length}, one lost root key makes the repository unusable`]
      : []),
    ...(leavers > 0
      ? [
          `the old root needs ${before.threshold} signatures and ${staying} of its keys stay: ` +
            `${leavers} of the removed keys must sign too, which is impossible for lost keys`,
        ]
      : []),
    ...lowered.map((role) => `the threshold of ${role} becomes lower: fewer stolen keys are enough`),
  ];
}
