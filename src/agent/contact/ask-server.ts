// Checks whether a server can be reached: one request without a body; its answer is not read, and no trust depends on it. Each request
// opens a connection, because a firewall that refuses new connections still passes those that were open at the swap.
import type { AgentConfig, ContactServer, FleetConfig, MirrorConfig } from '../../core/config/config.js';
import { given } from '../../core/given.js';
import { readAuthorityFile } from '../../platform/net/authorities.js';
import { askHttp } from '../../platform/net/http-request.js';
import { createProxies } from '../../platform/net/proxies.js';
import type { Clock } from '../../platform/time/clock.js';

const defaultTimeoutMs = 10_000;
const maxAnswerBytes = 65_536;
const timestampPath = 'metadata/timestamp.json';

interface Servers {
  readonly repository: readonly Pick<MirrorConfig, 'url' | 'ca'>[];
  readonly fleet?: Pick<FleetConfig, 'url' | 'ca'>;
  readonly proxy?: AgentConfig['proxy'];
}

export interface AskOptions {
  readonly clock: Clock;
  /** 10 s by default. */
  readonly timeoutMs?: number;
}

interface Place {
  readonly url: URL;
  readonly ca?: string | undefined;
}

/**
 * Any answer of HTTP is contact, with any status; one of several mirrors is sufficient.
 * @returns the reason why no address was reached; undefined if one answered
 */
export async function askServer(
  servers: Servers,
  server: ContactServer,
  options: AskOptions,
): Promise<string | undefined> {
  const failures = await Promise.all(
    placesOf(servers, server).map((place) => askPlace(place, servers, options)),
  );
  if (failures.includes(undefined)) return undefined;
  return failures[0] ?? 'it has no address on a network';
}

function placesOf({ repository, fleet }: Servers, server: ContactServer): Place[] {
  if (server === 'fleet') return fleet === undefined ? [] : [{ url: new URL(fleet.url), ca: fleet.ca }];
  return repository.flatMap(({ url, ca }) => {
    const base = url.endsWith('/') ? url : `${url}/`;
    return url.startsWith('file:') ? [] : [{ url: new URL(timestampPath, base), ca }];
  });
}

async function askPlace(
  { url, ca: path }: Place,
  { proxy }: Servers,
  { clock, timeoutMs = defaultTimeoutMs }: AskOptions,
): Promise<string | undefined> {
  const read = path === undefined ? undefined : readAuthorityFile(path);
  if (read?.kind === 'refused') return `${path}: ${read.why}`;
  const ca = read?.pem;
  const asked = { url, method: 'HEAD', proxies: createProxies(proxy) };
  const reply = await askHttp({ ...asked, timeoutMs, maxAnswerBytes, clock, ...given({ ca }) });
  return reply.kind === 'answered' ? undefined : `${url.host}: ${reply.reason}`;
}
