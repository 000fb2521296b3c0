// What a schema cannot bound, since it is a text: every duration and size in a configuration file, the percentages of a check of
// the change, the length of the path of a socket, and the URL and exceptions of a proxy.
import { maxSocketPathBytes } from '../limits.js';
import { parseDuration, parsePercent, parsePercentRange, parseSize } from '../names.js';
import { readProxyUrl, whyNoException } from '../proxy-rules.js';
import type { Schema } from './config-keys.js';
import { at, type ConfigPath, type Finding, type Group, group, list } from './findings.js';

/** @returns every duration and size that is out of the bounds of its key; a text that is none is the schema's */
export function* checkBounds(schema: Schema, value: unknown, path: ConfigPath): Generator<Finding> {
  const { bounds, items, properties = {} } = schema;
  if (bounds !== undefined && typeof value === 'string') {
    const { of, min, max } = bounds;
    const amount = of === 'duration' ? parseDuration(value) : parseSize(value);
    if (amount !== undefined && !(amount >= min && amount <= max)) yield at(path, outside(bounds, value));
  }
  if (items !== undefined)
    for (const [index, one] of list(value).entries()) yield* checkBounds(items, one, [...path, index]);
  for (const [key, inner] of Object.entries(properties))
    yield* checkBounds(inner, group(value)[key], [...path, key]);
}

function outside({ of, min, max }: NonNullable<Schema['bounds']>, value: string): string {
  if (of === 'duration') return `must be from ${min / 1000} to ${max / 1000} seconds; it is ${value}`;
  return `must be from ${min / 1000} kB to ${max / 1e6} MB; it is ${value}`;
}

/** @returns the percentages of a check of the change that no release could exceed, or none could satisfy */
export function* changeRules(change: unknown, path: ConfigPath): Generator<Finding> {
  const { removed, bytes } = group(change);
  if (typeof removed === 'string' && (parsePercent(removed) ?? 0) > 100)
    yield at([...path, 'removed'], `must be from 0% to 100%; it is ${removed}`);
  const range = typeof bytes === 'string' ? parsePercentRange(bytes) : undefined;
  // A release of the same size has 100%: without it no small change could ever arrive.
  if (range !== undefined && (range.min > 100 || range.max < 100))
    yield at([...path, 'bytes'], `must contain 100%, the size of the active release; it is ${bytes}`);
}

/** @returns servers that can never be lost, or are not there, and bake times that nothing is watched in */
export function* contactRules({ bundles, repository, fleet }: Group): Generator<Finding> {
  const sources = Array.isArray(repository) ? repository : [repository];
  const urls = sources.map((one) => (typeof one === 'string' ? one : group(one)['url']));
  const isFile = (url: unknown): boolean => typeof url === 'string' && url.startsWith('file:');
  for (const [index, one] of list(bundles).entries()) {
    const { contact, for: time } = group(group(one)['bake']);
    const path = ['bundles', index, 'bake', 'contact'];
    if (contact === 'repository' && urls.every(isFile))
      yield at(path, 'cannot be repository: every source of the repository is a file: URL');
    if (contact === 'fleet' && fleet === undefined) yield at(path, 'is fleet, and there is no `fleet`');
    if ((contact === 'repository' || contact === 'fleet') && time === 0)
      yield at(path, 'needs a bake time: `for` is 0');
  }
}

/** @returns what is wrong with a proxy. Its URL is in no finding, because it may contain a password */
export function* proxyRules({ proxy }: Group): Generator<Finding> {
  const { url = proxy, ca, noProxy } = group(proxy);
  const path = typeof proxy === 'string' ? ['proxy'] : ['proxy', 'url'];
  for (const [index, entry] of list(noProxy).entries()) {
    const why = typeof entry === 'string' ? whyNoException(entry) : undefined;
    if (why !== undefined) yield at(['proxy', 'noProxy', index], why);
  }
  if (typeof url !== 'string' || proxy === 'none') return;
  const read = readProxyUrl(url);
  if (read.kind === 'refused') return yield at(path, read.why);
  if (read.credentials !== undefined)
    yield at(
      path,
      'must not have a user or password: write user:password into a file, named by `proxy.credentialsFile`',
    );
  if (/[?#]/.test(url) || new URL(url).pathname !== '/')
    yield at(path, 'must not have a path, or a part after ? or #');
  if (ca !== undefined && read.url.protocol !== 'https:')
    yield at(['proxy', 'ca'], 'is only used with an https proxy');
}

/** @returns what is wrong with the length of a socket's path */
export function* socketRule(path: string, where: ConfigPath): Generator<Finding> {
  const bytes = Buffer.byteLength(path);
  if (bytes <= maxSocketPathBytes) return;
  // Node 20 binds the name that the kernel cut off, without a word.
  const text = `the socket ${path} has ${bytes} bytes; a socket path has at most ${maxSocketPathBytes}`;
  yield { path: where, at: 'value', text, code: 'SOCKET_PATH_TOO_LONG' };
}
