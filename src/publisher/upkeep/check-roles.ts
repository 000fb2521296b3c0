// The metadata part of `writ repo check`: the chain of roots, then each role under the authority that signs it. Each file
// is judged separately, so that the problem of one does not hide those of others.
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';
import {
  type ArchiveLimits,
  defaultMetadataLimits as limits,
  metadataBytesByRole,
} from '../../core/limits.js';
import {
  delegationAuthority,
  isNamedBy,
  isVouched,
  requireDigests,
  requireFresh,
  requireThreshold,
  requireVersion,
  rootAuthority,
} from '../../core/tuf/metadata-checks.js';
import { maxVersionAfterGap } from '../../core/tuf/metadata-version.js';
import { trustFirstRoot, trustNextRoot } from '../../core/tuf/trusted-set.js';
import {
  type DelegatedRole,
  listedRole,
  type MetaFile,
  type ParsedFile,
  parseEnvelope,
  type TargetFile,
  type TopLevelRole,
} from '../../core/tuf/tuf-metadata.js';
import type { WorkReport } from '../../core/work-report.js';
import type { Clock } from '../../platform/time/clock.js';
import { delegatedRolesOf, readListedFile } from '../repository/delegated-files.js';
import { handedOverBy, isInForce } from '../repository/listing.js';
import {
  metadataName,
  type RepositoryLayout,
  reachableOnDisk,
  readRepositoryFile,
  versionsOnDisk,
} from '../repository/repository-layout.js';
import { readOwnRoot } from '../repository/repository-state.js';
import { readUnverified } from '../repository/unverified-metadata.js';
import { readVersionRestarts } from '../repository/version-restarts.js';

export interface Findings {
  /** Runs a check and records its refusal as a problem of `where`. @returns undefined then */
  attempt<T>(where: string, act: () => T): T | undefined;
  attemptLater<T>(where: string, act: () => Promise<T>): Promise<T | undefined>;
  note(text: string): void;
}

export interface CheckOptions {
  readonly repository: string;
  /** The directory with the publisher's copy of the root. Without it, the first root in the repository is trusted. */
  readonly keysDirectory?: string | undefined;
  readonly limits: ArchiveLimits;
  readonly clock: Clock;
  readonly report: WorkReport;
}

type CheckedRoots = NonNullable<ReturnType<typeof checkRoots>>;

/**
 * @returns anchor: the bytes of the trusted first root; newest: the last root of the unbroken chain; count: the roots on disk.
 *   undefined if the first root is missing or cannot be verified, or the served one is not that of keysDirectory
 */
export function checkRoots(
  layout: RepositoryLayout,
  findings: Findings,
  { keysDirectory, clock }: CheckOptions,
) {
  const versions = versionsOnDisk(layout, 'root');
  const own = readOwnRoot(keysDirectory);
  const begin = findings.attempt('metadata/1.root.json', () => {
    const first = readFile(layout, metadataName('root', 1), limits.maxRootBytes);
    return { set: trustFirstRoot(own ?? first), anchor: own ?? first };
  });
  if (begin === undefined) return undefined;
  let { set } = begin;
  const served = metadataName('root', set.root.signed.version);
  const isServed = findings.attempt(`metadata/${served}`, () => requireSameRoot(layout, set.root));
  if (isServed === undefined) return undefined;
  for (const version of versions.filter((one) => one > set.root.signed.version)) {
    const name = metadataName('root', version);
    const next = findings.attempt(`metadata/${name}`, () =>
      trustNextRoot(set, readFile(layout, name, limits.maxRootBytes)),
    );
    // Roots after a broken link of the chain cannot be verified.
    if (next === undefined) break;
    set = next;
  }
  const name = metadataName('root', set.root.signed.version);
  findings.attempt(`metadata/${name}`, () => requireFresh(set.root, clock.nowMs()));
  return { anchor: begin.anchor, newest: set.root, count: versions.length };
}

/**
 * The publisher's copy must equal the served root of its version; otherwise hosts follow another chain than the publisher.
 */
function requireSameRoot(layout: RepositoryLayout, { bytes, signed }: ParsedFile<'root'>): true {
  const name = metadataName('root', signed.version);
  if (readFile(layout, name, limits.maxRootBytes).equals(bytes)) return true;
  throw new WritError('ROOT_NOT_LINKED', `${name} differs from the copy of the publisher`, {
    facts: { name },
  });
}

/**
 * Checks the top-level roles in the order in which each names the next, then the teams. Files that only a wrong file names
 * are not checked.
 * @returns the counts of each role, and the listed releases; a path counts as its first role lists it
 */
export function checkRoles(
  layout: RepositoryLayout,
  findings: Findings,
  { roots, clock }: CheckOptions & { readonly roots: CheckedRoots },
) {
  const counts: { readonly role: string; readonly version: number; readonly targets: number }[] = [];
  const releases = new Map<string, TargetFile>();
  const root = roots.newest;
  const check = <Role extends TopLevelRole>(
    name: string,
    read: () => ParsedFile<Role>,
  ): ParsedFile<Role> | undefined => {
    const file = findings.attempt(`metadata/${name}`, read);
    if (file === undefined) return undefined;
    findings.attempt(`metadata/${name}`, () => requireFresh(file, clock.nowMs()));
    const targets = file.signed._type === 'targets' ? file.signed.targets : {};
    counts.push({ role: file.name, version: file.signed.version, targets: Object.keys(targets).length });
    // Hosts use the first role that lists a path.
    for (const [path, target] of Object.entries(targets)) {
      if (!releases.has(path)) releases.set(path, target);
    }
    return file;
  };
  const checkNamed = <Role extends 'snapshot' | 'targets'>(role: Role, meta: MetaFile | undefined) => {
    if (meta === undefined) return undefined;
    const name = metadataName(role, meta.version);
    return check(name, () => readRole(layout, root, role, name, meta));
  };
  const timestamp = check('timestamp.json', () => readRole(layout, root, 'timestamp', 'timestamp.json'));
  const snapshot = checkNamed('snapshot', timestamp?.signed.meta['snapshot.json']);
  const targets = checkNamed('targets', snapshot?.signed.meta['targets.json']);
  for (const [name, { version }] of Object.entries(snapshot?.signed.meta ?? {})) {
    noteUnreachable(layout, findings, listedRole(name), version);
  }
  for (const role of targets === undefined ? [] : delegatedRolesOf(targets)) {
    const meta = snapshot?.signed.meta[`${role.name}.json`];
    if (targets === undefined || meta === undefined) {
      const isRestarted = snapshot !== undefined && readVersionRestarts(snapshot.signed).has(role.name);
      noteUnpublished(layout, findings, { role: role.name, isRestarted });
    } else if (waitsToSign(layout, targets, role, meta)) {
      const text = 'has not signed since its keys changed: hosts keep its releases until it signs';
      findings.note(`${role.name} ${text} (writ sign --role ${role.name})`);
    } else check(metadataName(role.name, meta.version), () => readListedFile(layout, targets, role, meta));
  }
  return { counts, releases: [...releases].map(([path, file]) => ({ path, file })) };
}

/** A version on disk that no snapshot names may wait for the online keys, or may not verify. */
function noteUnpublished(
  layout: RepositoryLayout,
  findings: Findings,
  { role, isRestarted }: { readonly role: string; readonly isRestarted: boolean },
): void {
  if (isRestarted) {
    findings.note(`${role} is not published since its versions began again, until its keys sign`);
    return;
  }
  const isSigned = versionsOnDisk(layout, role).length > 0;
  findings.note(`${role} ${isSigned ? 'has no published version' : 'has signed nothing'} yet`);
}

/**
 * After a key change, and where a removed team is delegated to again, the snapshot lists the file of the former keys until the
 * team signs. The targets then hand over what the team had listed. A damaged file stays a problem.
 */
function waitsToSign(
  layout: RepositoryLayout,
  targets: ParsedFile<'targets'>,
  role: DelegatedRole,
  meta: MetaFile,
): boolean {
  const handedOver = handedOverBy(targets);
  const received = Object.hasOwn(handedOver, role.name) ? handedOver[role.name] : undefined;
  const file = readUnverified(layout, 'targets', meta.version, role.name);
  if (received === undefined || file === undefined || !isNamedBy(meta, file)) return false;
  return isInForce(received, file) && !isVouched(file, delegationAuthority(targets, role));
}

function noteUnreachable(
  layout: RepositoryLayout,
  findings: Findings,
  role: string,
  published: number,
): void {
  const reachable = new Set(reachableOnDisk(layout, role, published));
  for (const version of versionsOnDisk(layout, role)) {
    if (reachable.has(version)) continue;
    const text = `is above ${maxVersionAfterGap}, does not follow version ${published}, and is never published. A stolen key may have signed it; \`writ repo gc\` removes it`;
    findings.note(`metadata/${metadataName(role, version)} ${text}`);
  }
}

const maxBytesOf = metadataBytesByRole(limits);

/** @param meta the entry that lists the file; the timestamp has none */
function readRole<Role extends 'timestamp' | 'snapshot' | 'targets'>(
  layout: RepositoryLayout,
  root: ParsedFile<'root'>,
  role: Role,
  name: string,
  meta?: MetaFile,
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
