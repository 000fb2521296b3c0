// Chooses the proxy of a URL and its credentials. The credentials file is read at each connection, so that a new password needs
// no restart. Credentials occur in one header only, never in an error or a log.
import { WritError } from '../../core/errors.js';
import {
  type Environment,
  type ProxyRoute,
  type ProxySetting,
  type ProxyUse,
  proxyUses,
  routeTo,
} from '../../core/proxy-rules.js';
import { readSmallFile } from '../read-file.js';
import { readAuthorityFile } from './authorities.js';

/** @returns undefined for a direct connection. @throws WritError PROXY_INVALID */
export type Proxies = (target: URL) => ProxyRoute | undefined;

/**
 * @param setting of the configuration; undefined: the variables in `env`, which is that of this process by default
 * @returns the function from a target URL to its proxy; undefined for a direct connection. It decides at each call and sends
 *   nothing. The function throws WritError PROXY_INVALID if the proxy of this target has a URL that cannot be used;
 *   createProxies itself throws nothing.
 */
export function createProxies(setting?: ProxySetting, env: Environment = process.env): Proxies {
  return (target) => {
    const route = routeTo(target, setting, env);
    if (route.kind === 'direct') return undefined;
    if (route.kind === 'proxy') return route;
    const { from, why } = route;
    throw invalid(`${target.origin}: the URL of the proxy in ${sourceText(from)} ${why}`, {
      url: target.origin,
      from,
    });
  };
}

/** @returns the proxies that the environment of this process sets for these servers */
export function ownProxyUses(servers: Parameters<typeof proxyUses>[0]): ProxyUse[] {
  return proxyUses(servers, process.env);
}

/** @returns the source of a setting for a message: a configuration key is quoted, a variable is not */
export function sourceText(from: string): string {
  return from === 'proxy' ? '`proxy`' : from;
}

const maxCredentialBytes = 4096;

/** @returns the header with the credentials; empty without credentials. @throws WritError PROXY_INVALID */
export function proxyHeaders({ credentials, credentialsFile }: ProxyRoute): Readonly<Record<string, string>> {
  const known = credentialsFile === undefined ? credentials : readCredentials(credentialsFile);
  if (known === undefined) return {};
  return { 'proxy-authorization': `Basic ${Buffer.from(known, 'utf8').toString('base64')}` };
}

function readCredentials(path: string): string {
  const read = readSmallFile(path, { maxBytes: maxCredentialBytes });
  const facts = { path };
  if (read.kind !== 'read') throw invalid(`${path}: ${read.why}`, facts);
  const text = read.bytes.toString('utf8').replace(/\r?\n$/, '');
  if (/^[^\p{Cc}:]+:\P{Cc}*$/u.test(text)) return text;
  throw invalid(`${path}: it is not one line, user:password`, facts);
}

/** @returns PEM of the authorities of an https proxy; undefined: those of the system. @throws WritError PROXY_INVALID */
export function readProxyCa({ ca: path }: ProxyRoute): string | undefined {
  if (path === undefined) return undefined;
  const read = readAuthorityFile(path);
  if (read.kind === 'read') return read.pem;
  throw invalid(`${path}: ${read.why}`, { path });
}

function invalid(message: string, facts: Readonly<Record<string, string>>): WritError {
  return new WritError('PROXY_INVALID', message, { facts });
}
