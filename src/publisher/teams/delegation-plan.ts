// What a delegation changes: the roles that the targets delegate to, their keys and names, and which role lists which
// release from then on. Pure over a repository's state; whether it may is delegation-rules'; signs and writes nothing.
import { WritError } from '../../core/errors.js';
import { keyId } from '../../core/tuf/signature-schemes.js';
import { matchesPath } from '../../core/tuf/target-search.js';
import type {
  DelegatedRole,
  Delegations,
  MetadataKey,
  ParsedFile,
  TargetFile,
} from '../../core/tuf/tuf-metadata.js';
import type { PublicKey } from '../keys/public-key.js';
import { signersOf } from '../keys/signer-names.js';
import { delegatedRolesOf, versionIn } from '../repository/delegated-files.js';
import { type HandOver, handedOverBy, targetsListedBy } from '../repository/listing.js';
import type { RepositoryState } from '../repository/repository-state.js';
import { delegatedLives, isVouchedBy } from '../signing/sign-role.js';
import {
  type DelegationRequest,
  requireHandOver,
  requireKeys,
  requireName,
  requirePaths,
} from './delegation-rules.js';

export interface DelegationPlan {
  readonly role: string;
  readonly kind: 'created' | 'changed' | 'removed';
  readonly before?: DelegatedRole;
  readonly after?: DelegatedRole;
  /** Paths of releases that another role lists from now on. */
  readonly moved: readonly string[];
  /** The role lists nothing until its keys have signed: what it listed, or was handed over, waits in the targets. */
  readonly needsSignature: boolean;
  /** Names of the role's keys by key id. */
  readonly names: ReadonlyMap<string, string>;
  /** The top-level targets to sign. */
  readonly targets: Readonly<Record<string, TargetFile>>;
  readonly delegations: Delegations;
  /** Members of the targets' `writ`. */
  readonly ours: { readonly handedOver: object; readonly livesMs: object; readonly signers: object };
}

/**
 * @returns undefined when nothing would change
 * @throws WritError DELEGATION_REFUSED, ROLE_UNKNOWN, USAGE
 */
export function planDelegation(
  state: RepositoryState,
  request: DelegationRequest,
): DelegationPlan | undefined {
  const { role } = request;
  const before = delegatedRolesOf(state.targets).find(({ name }) => name === role);
  if (request.change === undefined) {
    if (before === undefined) throw unknownRole(state, role);
    return planRemoval(state, request, before);
  }
  requireName(state, role);
  const after = roleAfter(role, before, request.change);
  requireKeys(state, after, request);
  requirePaths(state, after);
  return planChange(state, request, { before, after });
}

function unknownRole({ targets }: RepositoryState, role: string): WritError {
  const known = delegatedRolesOf(targets).map(({ name }) => name);
  return new WritError('ROLE_UNKNOWN', `the targets delegate to no ${role}`, {
    facts: { role, known: known.slice(0, 50) },
  });
}

type Change = NonNullable<DelegationRequest['change']>;

function roleAfter(role: string, before: DelegatedRole | undefined, change: Change): DelegatedRole {
  const keyids = change.keys?.map((key) => key.keyId) ?? before?.keyids ?? [];
  const paths = change.paths ?? before?.paths ?? [];
  const threshold = change.threshold ?? before?.threshold ?? 1;
  return {
    name: role,
    keyids: [...new Set(keyids)],
    threshold,
    paths: [...new Set(paths)],
    terminating: true,
  };
}

interface Roles {
  readonly before: DelegatedRole | undefined;
  readonly after: DelegatedRole;
}

function planChange(
  state: RepositoryState,
  request: DelegationRequest,
  { before, after }: Roles,
): DelegationPlan | undefined {
  const { targets } = state;
  const own = targetsListedBy(state, after.name);
  const taken = pathsOf(targets.signed.targets).filter((path) => matchesPath(after, path));
  const left = pathsOf(own).filter((path) => !matchesPath(after, path));
  requireHandOver(request, { taken, left, role: after.name });
  const next = delegationsWith(state, after, request.change?.keys ?? []);
  const current = state.delegated.get(after.name);
  const vouched = current !== undefined && isVouchedBy(withDelegations(targets, next), after.name, current);
  const listed = {
    ...pick(own, (path) => matchesPath(after, path)),
    ...pick(targets.signed.targets, (path) => taken.includes(path)),
  };
  const newest = current?.signed.version ?? 0;
  const handOver: HandOver = {
    after: Math.max(newest, versionIn(state.live.snapshot.signed.meta, after.name)),
    targets: listed,
  };
  const needsSignature = !vouched || taken.length > 0 || left.length > 0;
  const lives = { ...delegatedLives(targets) };
  if (request.change?.lifeMs !== undefined) lives[after.name] = request.change.lifeMs;
  const plan: DelegationPlan = {
    role: after.name,
    kind: before === undefined ? 'created' : 'changed',
    ...(before === undefined ? {} : { before }),
    after,
    moved: [...taken, ...left],
    needsSignature,
    names: namesOf(state, after, request.change?.keys ?? []),
    targets: {
      ...pick(targets.signed.targets, (path) => !taken.includes(path)),
      ...pick(own, (path) => left.includes(path)),
    },
    delegations: next,
    ours: {
      handedOver: needsSignature
        ? { ...handedOverBy(targets), [after.name]: handOver }
        : handedOverBy(targets),
      livesMs: lives,
      signers: signersAfter(state, next, request.change?.keys ?? []),
    },
  };
  return isSame(state, plan, request) ? undefined : plan;
}

function planRemoval(
  state: RepositoryState,
  request: DelegationRequest,
  before: DelegatedRole,
): DelegationPlan {
  const { targets } = state;
  const { role } = request;
  const own = targetsListedBy(state, role);
  requireHandOver(request, { taken: [], left: pathsOf(own), role });
  const roles = delegatedRolesOf(targets).filter(({ name }) => name !== role);
  const { [role]: _gone, ...handedOver } = handedOverBy(targets);
  const { [role]: _life, ...livesMs } = delegatedLives(targets);
  const delegations = { keys: keysOf(state, roles, []), roles };
  return {
    role,
    kind: 'removed',
    before,
    moved: pathsOf(own),
    needsSignature: false,
    names: namesOf(state, before, []),
    targets: { ...targets.signed.targets, ...own },
    delegations,
    ours: { handedOver, livesMs, signers: signersAfter(state, delegations, []) },
  };
}

function delegationsWith(
  state: RepositoryState,
  after: DelegatedRole,
  added: readonly PublicKey[],
): Delegations {
  const others = delegatedRolesOf(state.targets);
  const isNew = !others.some(({ name }) => name === after.name);
  const roles = isNew ? [...others, after] : others.map((role) => (role.name === after.name ? after : role));
  return { keys: keysOf(state, roles, added), roles };
}

/** The keys that some role still has; those of a role that went go with it. */
function keysOf(
  { targets }: RepositoryState,
  roles: readonly DelegatedRole[],
  added: readonly PublicKey[],
): Record<string, MetadataKey> {
  const used = new Set(roles.flatMap(({ keyids }) => keyids));
  const known = Object.entries(targets.signed.delegations?.keys ?? {});
  const all = [...known, ...added.map(({ key }) => [keyId(key), key] as const)];
  return Object.fromEntries(all.filter(([id]) => used.has(id)));
}

function signersAfter(
  { targets }: RepositoryState,
  { keys }: Delegations,
  added: readonly PublicKey[],
): Record<string, string> {
  const names = new Map([
    ...signersOf(targets.signed),
    ...added.map((key) => [key.keyId, key.name] as const),
  ]);
  return Object.fromEntries([...names].filter(([id]) => Object.hasOwn(keys, id)));
}

function namesOf(
  { targets }: RepositoryState,
  { keyids }: DelegatedRole,
  added: readonly PublicKey[],
): ReadonlyMap<string, string> {
  const known = signersOf(targets.signed);
  const given = new Map(added.map((key) => [key.keyId, key.name]));
  return new Map(keyids.map((id) => [id, given.get(id) ?? known.get(id) ?? id.slice(0, 8)]));
}

function withDelegations(targets: ParsedFile<'targets'>, delegations: Delegations): ParsedFile<'targets'> {
  return { ...targets, signed: { ...targets.signed, delegations } };
}

function isSame({ targets }: RepositoryState, plan: DelegationPlan, { change }: DelegationRequest): boolean {
  const { before, after, moved } = plan;
  const life = delegatedLives(targets)[plan.role];
  const sameLife = change?.lifeMs === undefined || change.lifeMs === life;
  return (
    before !== undefined &&
    moved.length === 0 &&
    sameLife &&
    JSON.stringify(normal(before)) === JSON.stringify(normal(after))
  );
}

function normal(role: DelegatedRole | undefined): object {
  return {
    keyids: [...(role?.keyids ?? [])].sort(),
    paths: [...(role?.paths ?? [])].sort(),
    threshold: role?.threshold,
    terminating: role?.terminating,
  };
}

function pathsOf(targets: Readonly<Record<string, TargetFile>>): string[] {
  return Object.keys(targets).sort();
}

function pick(
  targets: Readonly<Record<string, TargetFile>>,
  wanted: (path: string) => boolean,
): Record<string, TargetFile> {
  return Object.fromEntries(Object.entries(targets).filter(([path]) => wanted(path)));
}
