// Selects the proxy for a URL: from the key `proxy`, else from the environment of the process. The rules of NO_PROXY are those of
// Go's package golang.org/x/net/http/httpproxy, which documents all of them. The lower-case variable has precedence, as in curl.
// Pure: the environment is an argument, and no name is resolved.

export interface ProxyConfig {
  /** http or https, without user, path or query. */
  readonly url: string;
  /** Absolute path of a file with one line, `user:password`. */
  readonly credentialsFile?: string;
  /** PEM of the certificate authorities for an https proxy. */
  readonly ca?: string;
  /** Entries as in NO_PROXY. */
  readonly noProxy?: readonly string[];
}

/** `none`: no proxy, even if the environment names one. */
export type ProxySetting = 'none' | ProxyConfig;

export type Environment = Readonly<Record<string, string | undefined>>;

/** An http or https proxy, with the source of its credentials. */
export interface ProxyRoute {
  readonly kind: 'proxy';
  readonly url: URL;
  /** The key or variable that names the proxy. */
  readonly from: string;
  /** `user:password` of a variable. */
  readonly credentials?: string;
  readonly credentialsFile?: string;
  readonly ca?: string;
}

export type Route =
  | ProxyRoute
  /** `because`: the setting that excludes a proxy; undefined if no proxy is configured. */
  | { readonly kind: 'direct'; readonly because?: string }
  | { readonly kind: 'unusable'; readonly from: string; readonly why: string };

/**
 * @param setting undefined: the environment decides
 * @returns how to connect to `target`
 */
export function routeTo(target: URL, setting: ProxySetting | undefined, env: Environment): Route {
  if (target.protocol === 'file:') return { kind: 'direct' };
  if (setting === 'none') return { kind: 'direct', because: 'proxy: none' };
  if (setting !== undefined) return routeOfKey(target, setting);
  const named = variableFor(target.protocol, env);
  if (named === undefined) return { kind: 'direct' };
  const exceptions = firstOf(env, ['no_proxy', 'NO_PROXY']);
  const because = exceptionTo(target, splitNoProxy(exceptions?.value ?? ''), exceptions?.name ?? 'NO_PROXY');
  if (because !== undefined) return { kind: 'direct', because };
  const { name: from, value } = named;
  const read = readProxyUrl(value.includes('://') ? value : `http://${value}`);
  return read.kind === 'read'
    ? { kind: 'proxy', url: read.url, from, ...(read.credentials && { credentials: read.credentials }) }
    : { kind: 'unusable', from, why: read.why };
}

function routeOfKey(target: URL, { url, credentialsFile, ca, noProxy = [] }: ProxyConfig): Route {
  const because = exceptionTo(target, noProxy, 'proxy.noProxy');
  if (because !== undefined) return { kind: 'direct', because };
  const read = readProxyUrl(url);
  if (read.kind === 'refused') return { kind: 'unusable', from: 'proxy', why: read.why };
  const files = { ...(credentialsFile && { credentialsFile }), ...(ca && { ca }) };
  return { kind: 'proxy', url: read.url, from: 'proxy', ...files };
}

function variableFor(protocol: string, env: Environment) {
  if (protocol === 'https:') return firstOf(env, ['https_proxy', 'HTTPS_PROXY']);
  // In a CGI program HTTP_PROXY is the header `Proxy` of the request, so that any client could set it (CVE-2016-5385).
  const isCgi = env['REQUEST_METHOD'] !== undefined;
  return firstOf(env, isCgi ? ['http_proxy'] : ['http_proxy', 'HTTP_PROXY']);
}

/** An empty variable counts as not set. */
function firstOf(env: Environment, names: readonly string[]) {
  return names.map((name) => ({ name, value: env[name]?.trim() ?? '' })).find(({ value }) => value !== '');
}

export type ProxyUrlVerdict =
  | { readonly kind: 'read'; readonly url: URL; readonly credentials?: string }
  | { readonly kind: 'refused'; readonly why: string };

/** @returns the URL without its user. No message contains the text, because it may contain a password. */
export function readProxyUrl(text: string): ProxyUrlVerdict {
  if (!URL.canParse(text)) return { kind: 'refused', why: 'is not a URL, as http://proxy.example.net:3128' };
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return { kind: 'refused', why: `begins with ${url.protocol}; a proxy is http:// or https://` };
  const { username, password } = url;
  const plain = new URL(url.origin);
  if (username === '' && password === '') return { kind: 'read', url: plain };
  return { kind: 'read', url: plain, credentials: `${decoded(username)}:${decoded(password)}` };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}

function splitNoProxy(text: string): string[] {
  return text.split(/[,\s]+/).filter((entry) => entry !== '');
}

/**
 * @param from name of the list
 * @returns the exception that matches the target; undefined if none does
 */
function exceptionTo(target: URL, entries: readonly string[], from: string): string | undefined {
  const host = hostOf(target);
  if (isLoopbackHost(host)) return 'loopback';
  const port = Number(target.port) || (target.protocol === 'https:' ? 443 : 80);
  return entries.some((entry) => isCovered(entry.toLowerCase(), host, port)) ? from : undefined;
}

/** In lower case, without the brackets of an IPv6 address and the final dot of a name. */
function hostOf({ hostname }: URL): string {
  return hostname
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
}

/**
 * @param host the name or address of a URL; a name is not resolved
 * @returns whether it names this machine: `localhost`, a name under it, or a loopback address
 */
export function isLoopbackHost(host: string): boolean {
  if (host === 'localhost' || host.endsWith('.localhost')) return true;
  return isCovered('127.0.0.0/8', host, 0) || isCovered('::1', host, 0);
}

function isCovered(entry: string, host: string, port: number): boolean {
  if (entry === '*') return true;
  const address = addressOf(host);
  const network = networkOf(entry);
  if (network !== undefined) return address !== undefined && address >> network.low === network.high;
  const { name, port: onlyPort } = hostAndPort(entry);
  if (onlyPort !== undefined && onlyPort !== port) return false;
  const named = addressOf(name);
  if (named !== undefined) return named === address;
  if (address !== undefined) return false;
  const suffix = name.replace(/^\*\./, '.');
  return suffix.startsWith('.') ? host.endsWith(suffix) : host === suffix || host.endsWith(`.${suffix}`);
}

/** @returns why an entry of `noProxy` can never match; undefined if it can */
export function whyNoException(entry: string): string | undefined {
  if (entry === '*') return undefined;
  if (entry.includes('/')) {
    if (networkOf(entry) !== undefined) return undefined;
    return 'is not a network, as 10.0.0.0/8, and a host is written without scheme and path';
  }
  const { name } = hostAndPort(entry);
  const isName = /^(?:\*?\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/i.test(name);
  return isName || addressOf(name) !== undefined
    ? undefined
    : 'is not a host, a suffix, an address or a network, as example.net, .example.net or 10.0.0.0/8';
}

/** An IPv6 address with a port has brackets. */
function hostAndPort(entry: string): { readonly name: string; readonly port?: number } {
  const match = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(entry);
  if (match === null) return { name: entry };
  const name = (match[1] ?? match[2] ?? '').replace(/(.)\.$/, '$1');
  return match[3] === undefined ? { name } : { name, port: Number(match[3]) };
}

const addressBits = 128;
const mappedBits = 96;

interface Network {
  /** Number of bits that may differ. */
  readonly low: bigint;
  readonly high: bigint;
}

function networkOf(entry: string): Network | undefined {
  const match = /^([0-9a-f.:]+)\/(\d{1,3})$/i.exec(entry);
  const address = addressOf(match?.[1] ?? '');
  if (match === null || address === undefined) return undefined;
  const bits = Number(match[2]) + (match[1]?.includes(':') ? 0 : mappedBits);
  if (bits > addressBits) return undefined;
  const low = BigInt(addressBits - bits);
  return { low, high: address >> low };
}

/** @returns 128 bits; an IPv4 address as the IPv6 address that is mapped to it (RFC 4291 section 2.5.5.2) */
function addressOf(text: string): bigint | undefined {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)?.slice(1).map(Number);
  if (parts?.some((part) => part > 255)) return undefined;
  if (parts !== undefined) return parts.reduce((all, part) => (all << 8n) | BigInt(part), 0xffffn);
  // URL verifies and shortens the address.
  const literal = `http://[${text}]/`;
  if (!/^[0-9a-f:.]*:[0-9a-f:.]*$/i.test(text) || !URL.canParse(literal)) return undefined;
  const [front = [], back] = new URL(literal).hostname
    .slice(1, -1)
    .split('::')
    .map((side) => side.split(':').filter((word) => word !== ''));
  const zeros = back === undefined ? 0 : 8 - front.length - back.length;
  const words = [...front, ...Array<string>(zeros).fill('0'), ...(back ?? [])];
  return words.reduce((all, word) => (all << 16n) | BigInt(`0x${word}`), 0n);
}

/** How a process connects to a URL; without credentials. */
export interface ProxyUse {
  readonly url: string;
  /** URL of the proxy; undefined for a direct connection. */
  readonly proxy?: string;
  /** The key or variable that names or excludes the proxy, or `loopback`. */
  readonly from: string;
  /** Why the URL of the proxy cannot be used. */
  readonly why?: string;
}

interface Servers {
  readonly repository: readonly { readonly url: string }[];
  readonly fleet?: { readonly url: string };
  readonly proxy?: ProxySetting;
}

/** @returns one entry for each URL of the repository and the fleet; empty if no setting names a proxy */
export function proxyUses({ repository, fleet, proxy: setting }: Servers, env: Environment): ProxyUse[] {
  const urls = [...repository, ...(fleet === undefined ? [] : [fleet])].map(({ url }) => url);
  return urls.flatMap((url): ProxyUse[] => {
    const route = routeTo(new URL(url), setting, env);
    if (route.kind === 'direct') return route.because === undefined ? [] : [{ url, from: route.because }];
    if (route.kind === 'unusable') return [{ url, from: route.from, why: route.why }];
    return [{ url, proxy: route.url.origin, from: route.from }];
  });
}
