// Parses a request target with an allow-list: the files of a TUF repository with consistent snapshots, and two addresses of
// Writ. All other targets are `none`. Pure: reads no file, and never corrects a path.

import { parseVersion } from '../../core/tuf/metadata-version.js';
import { versionPattern } from '../../core/tuf/tuf-metadata.js';

export type RequestPath =
  | { readonly kind: 'timestamp' | 'health' | 'metrics' | 'none' }
  /** `N.root.json`. Every poll requests the next root, which is usually absent. */
  | { readonly kind: 'root'; readonly file: string }
  /** Files with a name that changes with their content; `file` is relative to the repository. */
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
/** Only `timestamp.json` is not immutable, and has no number in its name. */
const versionedName = new RegExp(`^(${versionPattern})\\.([^.].*\\.json)$`);
/** SHA-256 or SHA-512 in hex, which consistent snapshots put before the names of targets. */
const digestName = /^(?:[0-9a-f]{64}|[0-9a-f]{128})\.[^.].*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
const forbidden = /[\u0000-\u001f\u007f/\\]/;

/**
 * @param url the request target as received: a path or the absolute form, with or without a query
 * @returns kind timestamp, health or metrics; root, metadata or target with its file, relative to the repository (`N.root.json`
 *   is root); none for every other target
 */
export function parseRequestPath(url: string): RequestPath {
  // The two files of every poll come first, in the form that hosts send, so that nothing is split or decoded.
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

/** @returns the decoded segments; undefined when one of them is not a plain file name */
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
 * @param name decoded. Attack: an encoded slash is a path inside a name
 * @returns false for a name that is empty, longer than 255 bytes, has a slash, backslash or control character, ends in `.lock`,
 *   or begins with a dot, as `.`, `..` and the temporary files of an active write
 */
export function isPlainName(name: string): boolean {
  if (name === '' || name.startsWith('.') || name.endsWith('.lock')) return false;
  return !forbidden.test(name) && Buffer.byteLength(name) <= maxSegmentBytes;
}
