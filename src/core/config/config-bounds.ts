// Rules for texts with bounds that a JSON Schema cannot express: durations and sizes, the percentages of a change check, the
// length of a socket path, and the URL and exceptions of a proxy. Also the rules of `bake.contact`.
import { maxSocketPathBytes } from '../limits.js';
import { parseDuration, parsePercent, parsePercentRange, parseSize } from '../names.js';
import { readProxyUrl, whyNoException } from '../proxy-rules.js';
import type { Schema } from './config-keys.js';
import { asGroup, asList, at, type ConfigPath, type Finding, type Group } from './findings.js';

/** @returns a finding for each duration and size outside the bounds of its key; the schema reports an invalid text */
export function* checkBounds(schema: Schema, value: unknown, path: ConfigPath): Generator<Finding> {
  const { bounds, items, properties = {} } = schema;
  if (bounds !== undefined && typeof value === 'string') {
    const { of, min, max } = bounds;
    const amount = of === 'duration' ? parseDuration(value) : parseSize(value);
    if (amount !== undefined && !(amount >= min && amount <= max)) yield at(path, outside(bounds, value));
  }
  if (items !== undefined)
    for (const [index, one] of asList(value).entries()) yield* checkBounds(items, one, [...path, index]);
  for (const [key, inner] of Object.entries(properties))
    yield* checkBounds(inner, asGroup(value)[key], [...path, key]);
}

function outside({ of, min, max }: NonNullable<Schema['bounds']>, value: string): string {
  if (of === 'duration') return `must be from ${min / 1000} to ${max / 1000} seconds; it is ${value}`;
  return `must be from ${min / 1000} kB to ${max / 1e6} MB; it is ${value}`;
}

/** @returns findings for percentages of a change check that every release, or no release, satisfies */
export function* changeRules(change: unknown, path: ConfigPath): Generator<Finding> {
  const { removed, bytes } = asGroup(change);
  if (typeof removed === 'string' && (parsePercent(removed) ?? 0) > 100)
    yield at([...path, 'removed'], `must be from 0% to 100%; it is ${removed}`);
  const range = typeof bytes === 'string' ? parsePercentRange(bytes) : undefined;
  // A release of unchanged size has 100%: without it every small change would be refused.
  if (range !== undefined && (range.min > 100 || range.max < 100))
    yield at([...path, 'bytes'], `must contain 100%, the size of the active release; it is ${bytes}`);
}

/** @returns findings for a contact server that cannot be lost or is not configured, and for a contact without a bake time */
export function* contactRules({ bundles, repository, fleet }: Group): Generator<Finding> {
  const sources = Array.isArray(repository) ? repository : [repository];
  const urls = sources.map((one) => (typeof one === 'string' ? one : asGroup(one)['url']));
  const isFile = (url: unknown): boolean => typeof url === 'string' && url.startsWith('file:');
  for (const [index, one] of asList(bundles).entries()) {
    const { contact, for: time } = asGroup(asGroup(one)['bake']);
    const path = ['bundles', index, 'bake', 'contact'];
    if (contact === 'repository' && urls.every(isFile))
      yield at(path, 'cannot be repository: every source of the repository is a file: URL');
    if (contact === 'fleet' && fleet === undefined) yield at(path, 'is fleet, and there is no `fleet`');
    if ((contact === 'repository' || contact === 'fleet') && time === 0)
      yield at(path, 'needs a bake time: `for` is 0');
  }
}

/** @returns findings for a proxy. No finding contains its URL, because the URL may contain a password */
export function* proxyRules({ proxy }: Group): Generator<Finding> {
  const { url = proxy, ca, noProxy } = asGroup(proxy);
  const path = typeof proxy === 'string' ? ['proxy'] : ['proxy', 'url'];
  for (const [index, entry] of asList(noProxy).entries()) {
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

/**
 * Yields a finding if the path of a socket is too long for the kernel; otherwise nothing.
 * @param where the key of the configuration that the path comes from
 */
export function* socketRule(path: string, where: ConfigPath): Generator<Finding> {
  const bytes = Buffer.byteLength(path);
  if (bytes <= maxSocketPathBytes) return;
  // Node 20 binds the path that the kernel truncated, without an error.
  const text = `the socket ${path} has ${bytes} bytes; a socket path has at most ${maxSocketPathBytes}`;
  yield { path: where, at: 'value', text, code: 'SOCKET_PATH_TOO_LONG' };
}
