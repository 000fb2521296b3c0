// A release as the signed targets describe it: all that an agent decides on before a byte of the archive is
// fetched. Owns the way from a target entry to the path, length and digest of the archive.
import { WritError } from '../core/errors.js';
import { type Digest, digestFromHex, targetPath } from '../core/names.js';
import { parseReleaseInfo, type ReleaseInfo } from '../core/release.js';
import type { TrustedSet } from '../core/trusted-set.js';
import type { TargetFile } from '../core/tuf-metadata.js';
import { encodePath } from './source-path.js';

export interface SignedTarget {
  /** As the targets name it: `<bundle>/<channel>.tar.br`. */
  readonly path: string;
  readonly file: TargetFile;
  readonly release: ReleaseInfo;
  /** Where the repository has it, as a path for RepositorySource. */
  readonly archivePath: string;
  /** Bytes. */
  readonly length: number;
  readonly digest: Digest;
  /** The metadata that vouches for it, byte for byte: part of the release record. */
  readonly vouchedBy: { readonly role: 'targets'; readonly bytes: Uint8Array; readonly rootVersion: number };
}

/**
 * @returns the release at the head of a channel; undefined if the trusted targets do not list it
 * @throws WritError TARGET_MALFORMED when the entry lacks what Writ needs, or speaks of another bundle
 */
export function findTarget(set: TrustedSet, bundle: string, channel: string): SignedTarget | undefined {
  const { targets, root } = set;
  const path = targetPath(bundle, channel);
  if (targets === undefined || !Object.hasOwn(targets.signed.targets, path)) return undefined;
  const file = targets.signed.targets[path];
  if (file === undefined) return undefined;
  const release = parseReleaseInfo(file.custom, path);
  // One bundle's well-signed entry under another's name: the wrong policy on the right host.
  if (release.bundle !== bundle || release.channel !== channel) throw malformed(path, 'bundle or channel');
  const digest = digestFromHex(file.hashes['sha256']);
  if (digest === undefined) throw malformed(path, 'hashes.sha256');
  return {
    path,
    file,
    release,
    archivePath: archivePath(root.signed.consistent_snapshot === true, path, digest),
    length: file.length,
    digest,
    vouchedBy: { role: 'targets', bytes: targets.bytes, rootVersion: root.signed.version },
  };
}

/** Consistent snapshots put the digest before the last part of the name (specification 5.7.3). */
function archivePath(consistent: boolean, path: string, digest: Digest): string {
  const segments = path.split('/');
  const name = segments.pop() ?? '';
  const hex = digest.slice('sha256:'.length);
  return encodePath('targets', ...segments, consistent ? `${hex}.${name}` : name);
}

function malformed(path: string, member: string): WritError {
  return new WritError('TARGET_MALFORMED', `${path}: ${member} is missing or wrong`, {
    facts: { target: path, member },
  });
}
