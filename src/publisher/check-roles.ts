// The metadata half of `writ repo check`: the chain of roots, then each role under whoever vouches for it. Every file
// is judged by itself, so that one that is wrong hides nothing of the others.
import { join } from 'node:path';
import { WritError } from '../core/errors.js';
import { defaultMetadataLimits as limits } from '../core/limits.js';
import {
  requireDigests,
  requireFresh,
  requireThreshold,
  requireVersion,
  rootAuthority,
} from '../core/metadata-checks.js';
import { trustFirstRoot, trustNextRoot } from '../core/trusted-set.js';
import {
  type DelegatedRole,
  type MetaFile,
  type ParsedFile,
  parseEnvelope,
  type TargetFile,
} from '../core/tuf-metadata.js';
import type { CheckOptions, Findings } from './check-repository.js';
import { delegatedRolesOf, readDelegatedFile } from './delegated-files.js';
import {
  metadataName,
  type RepositoryLayout,
  readRepositoryFile,
  versionsOnDisk,
} from './repository-layout.js';
import { anchorName } from './repository-state.js';

export interface CheckedRoots {
  /** What everything was verified from. */
  readonly anchor: Uint8Array;
  readonly newest: ParsedFile<'root'>;
  readonly count: number;
}

export interface RoleCount {
  readonly role: string;
  readonly version: number;
  readonly targets: number;
}

export interface CheckedRoles {
  readonly counts: readonly RoleCount[];
  /** What the roles list, by path; each path as the first role lists it. */
  readonly releases: readonly { readonly path: string; readonly file: TargetFile }[];
}

/** @returns undefined when there is not even a first root to begin from */
export function checkRoots(
  layout: RepositoryLayout,
  findings: Findings,
  { keysDirectory, clock }: CheckOptions,
): CheckedRoots | undefined {
  const versions = versionsOnDisk(layout, 'root');
  const own =
    keysDirectory === undefined
      ? undefined
      : readRepositoryFile(join(keysDirectory, anchorName), limits.maxRootBytes);
  const begin = findings.attempt('metadata/1.root.json', () => {
    const first = readFile(layout, metadataName('root', 1), limits.maxRootBytes);
    const set = trustFirstRoot(own ?? first);
    requireSameRoot(layout, set.root);
    return { set, anchor: own ?? first };
  });
  if (begin === undefined) return undefined;
  let { set } = begin;
  for (const version of versions.filter((one) => one > set.root.signed.version)) {
    const name = metadataName('root', version);
    const next = findings.attempt(`metadata/${name}`, () =>
      trustNextRoot(set, readFile(layout, name, limits.maxRootBytes)),
    );
    // Behind a link that does not hold, nothing can be said of those that follow.
    if (next === undefined) break;
    set = next;
  }
  const name = metadataName('root', set.root.signed.version);
  findings.attempt(`metadata/${name}`, () => requireFresh(set.root, clock.nowMs()));
  return { anchor: begin.anchor, newest: set.root, count: versions.length };
}

/** The publisher's copy must be one of the roots that are served, or hosts follow another chain than he does. */
function requireSameRoot(layout: RepositoryLayout, { bytes, signed }: ParsedFile<'root'>): void {
  const name = metadataName('root', signed.version);
  if (readFile(layout, name, limits.maxRootBytes).equals(bytes)) return;
  throw new WritError('ROOT_NOT_LINKED', `${name} is not the publisher's copy of it`, { facts: { name } });
}

interface RolesContext extends CheckOptions {
  readonly roots: CheckedRoots;
}

export function checkRoles(
  layout: RepositoryLayout,
  findings: Findings,
  context: RolesContext,
): CheckedRoles {
  const counts: RoleCount[] = [];
  const releases = new Map<string, TargetFile>();
  const root = context.roots.newest;
  const check = <Role extends 'timestamp' | 'snapshot' | 'targets'>(
    role: Role,
    name: string,
    meta: MetaFile | undefined,
  ): ParsedFile<Role> | undefined => {
    const file = findings.attempt(`metadata/${name}`, () => readRole(layout, { role, name, meta, root }));
    if (file === undefined) return undefined;
    findings.attempt(`metadata/${name}`, () => requireFresh(file, context.clock.nowMs()));
    const listed =
      role === 'targets' ? Object.keys((file as ParsedFile<'targets'>).signed.targets).length : 0;
    counts.push({ role, version: file.signed.version, targets: listed });
    return file;
  };
  const timestamp = check('timestamp', 'timestamp.json', undefined);
  const ofSnapshot = timestamp?.signed.meta['snapshot.json'];
  const snapshot = ofSnapshot && check('snapshot', metadataName('snapshot', ofSnapshot.version), ofSnapshot);
  const ofTargets = snapshot?.signed.meta['targets.json'];
  const targets = ofTargets && check('targets', metadataName('targets', ofTargets.version), ofTargets);
  if (targets !== undefined) add(releases, targets);
  for (const role of targets === undefined ? [] : delegatedRolesOf(targets)) {
    const meta = snapshot?.signed.meta[`${role.name}.json`];
    if (targets === undefined || meta === undefined) {
      findings.note(`${role.name} has signed nothing yet`);
      continue;
    }
    const where = `metadata/${metadataName(role.name, meta.version)}`;
    const file = findings.attempt(where, () => readTeam(layout, { delegator: targets, role, meta }));
    if (file === undefined) continue;
    findings.attempt(where, () => requireFresh(file, context.clock.nowMs()));
    counts.push({
      role: role.name,
      version: file.signed.version,
      targets: Object.keys(file.signed.targets).length,
    });
    add(releases, file);
  }
  return { counts, releases: [...releases].map(([path, file]) => ({ path, file })) };
}

/** What the role before lists already, hosts find there. */
function add(releases: Map<string, TargetFile>, { signed }: ParsedFile<'targets'>): void {
  for (const [path, file] of Object.entries(signed.targets)) {
    if (!releases.has(path)) releases.set(path, file);
  }
}

interface TeamToRead {
  readonly delegator: ParsedFile<'targets'>;
  readonly role: DelegatedRole;
  readonly meta: MetaFile;
}

function readTeam(layout: RepositoryLayout, { delegator, role, meta }: TeamToRead): ParsedFile<'targets'> {
  const file = readDelegatedFile(layout, { delegator, role, version: meta.version });
  requireDigests(role.name, meta, file.bytes);
  requireVersion(role.name, meta, file.signed.version);
  return file;
}

interface RoleToRead<Role> {
  readonly role: Role;
  readonly name: string;
  readonly meta: MetaFile | undefined;
  readonly root: ParsedFile<'root'>;
}

const maxBytesOf = {
  timestamp: limits.maxTimestampBytes,
  snapshot: limits.maxSnapshotBytes,
  targets: limits.maxTargetsBytes,
} as const;

function readRole<Role extends 'timestamp' | 'snapshot' | 'targets'>(
  layout: RepositoryLayout,
  { role, name, meta, root }: RoleToRead<Role>,
): ParsedFile<Role> {
  const bytes = readFile(layout, name, maxBytesOf[role]);
  if (meta !== undefined) requireDigests(role, meta, bytes);
  const file = parseEnvelope(bytes, role);
  requireThreshold(file, rootAuthority(root, role));
  if (meta !== undefined) requireVersion(role, meta, file.signed.version);
  return file;
}

function readFile(layout: RepositoryLayout, name: string, maxBytes: number): Buffer {
  const bytes = readRepositoryFile(join(layout.metadata, name), maxBytes);
  if (bytes !== undefined) return bytes;
  throw new WritError('METADATA_MISSING', `the repository has no ${name}`, { facts: { name } });
}
