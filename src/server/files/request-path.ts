// What a request target names, by allow-list: the files of a TUF repository with consistent snapshots and two
// addresses of our own; everything else is `none`. Pure: it never asks the disk, and never repairs a path.

import { parseVersion } from '../../core/tuf/metadata-version.js';
import { versionPattern } from '../../core/tuf/tuf-metadata.js';

export type RequestPath =
  | { readonly kind: 'timestamp' | 'health' | 'metrics' | 'none' }
  /** `N.root.json`: the next one is asked for by every poll, and is usually not there yet. */
  | { readonly kind: 'root'; readonly file: string }
  /** Files whose name changes with their content; `file` is relative to the repository. */
  | { readonly kind: 'metadata' | 'target'; readonly file: string };

const none: RequestPath = { kind: 'none' };
const timestamp: RequestPath = { kind: 'timestamp' };
const ownAddresses: ReadonlyMap<string, RequestPath> = new Map([
  ['healthz', { kind: 'health' }],
  ['metrics', { kind: 'metrics' }],
]);

const maxSegments = 16;
const maxSegmentBytes = 255;
const absoluteForm = /^https?:\/\/[^/?#]*/i;
const plainRoot = new RegExp(`^/metadata/(${versionPattern})\\.root\\.json$`);
/** `timestamp.json` is the only metadata name that is not immutable, so it is the only one without a number. */
const versionedName = new RegExp(`^(${versionPattern})\\.([^.].*\\.json)$`);
/** sha256 or sha512 in hex, as consistent snapshots name targets. */
const digestName = /^(?:[0-9a-f]{64}|[0-9a-f]{128})\.[^.].*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
const forbidden = /[\u0000-\u001f\u007f/\\]/;

/**
 * @param url the request target as it came: path, or absolute form, with or without a query
 * @returns what it names; `none` for whatever is not on the list
 */
export function parseRequestPath(url: string): RequestPath {
  // The two that every poll asks for come first, in the form in which hosts write them: nothing is split or decoded.
  if (url === '/metadata/timestamp.json') return timestamp;
  if (parseVersion(plainRoot.exec(url)?.[1]) !== undefined) return { kind: 'root', file: url.slice(1) };
  const segments = pathSegments(url);
  if (segments === undefined) return none;
  const [folder = '', ...rest] = segments;
  const name = rest.at(-1);
  if (name === undefined) return ownAddresses.get(folder) ?? none;
  if (folder === 'metadata' && rest.length === 1) return metadataPath(name);
  if (folder === 'targets' && digestName.test(name)) return { kind: 'target', file: segments.join('/') };
  return none;
}

function metadataPath(name: string): RequestPath {
  if (name === 'timestamp.json') return timestamp;
  const file = `metadata/${name}`;
  const [, version, rest] = versionedName.exec(name) ?? [];
  if (parseVersion(version) === undefined) return none;
  return { kind: rest === 'root.json' ? 'root' : 'metadata', file };
}

/** The decoded segments, or undefined when one of them is no plain file name. */
function pathSegments(url: string): string[] | undefined {
  const [path = ''] = url.replace(absoluteForm, '').split(/[?#]/, 1);
  const [before, ...encoded] = path.split('/', maxSegments + 2);
  if (before !== '' || encoded.length > maxSegments) return undefined;
  const segments: string[] = [];
  for (const part of encoded) {
    const segment = decodeOnce(part);
    if (segment === undefined || !isPlainName(segment)) return undefined;
    segments.push(segment);
  }
  return segments;
}

function decodeOnce(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

/**
 * An encoded slash would be a path inside a name; a leading dot covers `.`, `..` and `.lock`, and the
 * temporary files of a write under way.
 */
export function isPlainName(name: string): boolean {
  if (name === '' || name.startsWith('.') || name.endsWith('.lock')) return false;
  return !forbidden.test(name) && Buffer.byteLength(name) <= maxSegmentBytes;
}
