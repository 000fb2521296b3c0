// `writ doctor`, check `names`: whether the host can resolve the name of its repository without a worker that needs policy itself.
// Reads resolv.conf and hosts; `judgeNames` is pure.
import type { AgentConfig } from '../../core/config/config.js';
import { readSmallFile } from '../../platform/read-file.js';
import { hostOf } from './check-server.js';
import { type Judged, ok, warn } from './judged.js';

export interface NameFacts {
  /** Host names of the mirrors in lower case, without IP addresses. */
  readonly names: readonly string[];
  /** The names in /etc/hosts, in lower case. */
  readonly known: readonly string[];
  /** Addresses from resolv.conf. */
  readonly nameservers: readonly string[];
  /** Names of the groups with DNS resolvers. */
  readonly resolverGroups: readonly string[];
}

const maxEtcBytes = 1_000_000;

/**
 * Reads how this host resolves the names of its mirrors. Sends no query. Throws nothing for a valid configuration.
 * @param etc directory of resolv.conf and hosts. A missing or unreadable file, or one of more than 1 MB, counts as empty
 * @returns `names`: host names of the mirrors, each once, without IP addresses and `file:` mirrors. `known`: the names in hosts,
 *   with duplicates. `nameservers`: addresses in the order of resolv.conf. Each list may be empty
 */
export function nameFacts(
  { repository }: Pick<AgentConfig, 'repository'>,
  etc: string,
): Omit<NameFacts, 'resolverGroups'> {
  const urls = repository.map((mirror) => new URL(mirror.url)).filter(({ protocol }) => protocol !== 'file:');
  const names = urls.map(hostOf).filter((host) => !/^[\d.]+$|:/.test(host));
  const nameservers = linesOf(`${etc}/resolv.conf`)
    .filter(([first]) => first === 'nameserver')
    .flatMap(([, address = '']) => address);
  const known = linesOf(`${etc}/hosts`).flatMap(([, ...aliases]) =>
    aliases.map((alias) => alias.toLowerCase()),
  );
  return { names: [...new Set(names)], known, nameservers };
}

function linesOf(path: string): string[][] {
  const read = readSmallFile(path, { maxBytes: maxEtcBytes });
  const text = read.kind === 'read' ? read.bytes.toString('utf8') : '';
  return text.split('\n').map((line) => line.replace(/#.*/, '').trim().split(/\s+/));
}

/**
 * Warns of a deadlock: the host needs the name for the policy, the resolver needs the policy to start, and only that resolver resolves
 * the name.
 */
export function judgeNames({ names, known, nameservers, resolverGroups }: NameFacts): Judged {
  const asked = names.filter((name) => !known.includes(name));
  if (asked.length === 0) return ok('the repository is reached without a name lookup');
  const own = nameservers.length > 0 && nameservers.every(isOwnResolver);
  const [group] = resolverGroups;
  if (!own || group === undefined) return ok(`${asked.join(', ')}: not resolved by a worker of Writ`);
  const text = `only ${nameservers.join(', ')} resolves ${asked.join(', ')}, and ${group} answers there: without policy there is no name, and without the name no policy`;
  return warn(text, 'add it to /etc/hosts, or a second nameserver to resolv.conf');
}

/** systemd-resolved forwards to other servers; any other resolver on a loopback address may be the worker. */
function isOwnResolver(address: string): boolean {
  if (address === '127.0.0.53' || address === '127.0.0.54') return false;
  return address === '::1' || address.startsWith('127.');
}
