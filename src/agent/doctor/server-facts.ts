// What `writ doctor` asks beyond the host: each mirror for its timestamp and its time, once, with short deadlines; and
// what this host knows of names. Gathers facts and judges none; what comes is read by nobody and changes nothing.
import type { AgentConfig, MirrorConfig } from '../../core/config/config.js';
import { toWritError } from '../../core/errors.js';
import { metadataBytesByRole } from '../../core/limits.js';
import { certificateEndsAtMs } from '../../platform/net/certificate.js';
import { openHttpDoor } from '../../platform/net/http-client.js';
import { readSmallFile } from '../../platform/read-file.js';
import type { Clock } from '../../platform/time/clock.js';
import { openRepositorySource } from '../../trust/sources/repository-source.js';
import { readCa } from '../startup/open-host.js';
import type { MirrorFacts, NameFacts } from './server-rules.js';

export interface MirrorLook {
  readonly facts: MirrorFacts;
  /** This host's clock minus the server's Date, milliseconds. */
  readonly aheadMs?: number;
}

export interface LookOptions {
  readonly config: AgentConfig;
  readonly clock: Clock;
  readonly version: string;
}

export function lookAtMirrors(options: LookOptions): Promise<MirrorLook[]> {
  return Promise.all(options.config.repository.map((mirror) => lookAtMirror(mirror, options)));
}

async function lookAtMirror(mirror: MirrorConfig, options: LookOptions): Promise<MirrorLook> {
  const url = new URL(mirror.url.endsWith('/') ? mirror.url : `${mirror.url}/`);
  const { clock } = options;
  try {
    const look = url.protocol === 'file:' ? await askFile(url, options) : await askHttp(url, mirror, options);
    const endsAtMs = await certificateOf(url);
    const certificate = endsAtMs === undefined ? {} : { certificateEndsAtMs: endsAtMs };
    return { ...look, facts: { ...look.facts, ...certificate } };
  } catch (error) {
    const { code, message, hint } = toWritError(error);
    return { facts: { url: url.href, error: { code, message, hint }, nowMs: clock.nowMs() } };
  }
}

const connectTimeoutMs = 5000;
const totalTimeoutMs = 15_000;
const timestampPath = 'metadata/timestamp.json';

async function askHttp(
  url: URL,
  mirror: MirrorConfig,
  { clock, version, config }: LookOptions,
): Promise<MirrorLook> {
  const limits = { ...config.transport, connectTimeoutMs };
  const ca = mirror.ca === undefined ? {} : { ca: readCa(mirror.ca) };
  const door = openHttpDoor(url, { limits, clock, version, redirects: mirror.redirects, ...ca });
  const startedMs = clock.monotonicMs();
  try {
    const exchange = await door.open({ path: timestampPath, totalTimeoutMs });
    const [tookMs, nowMs] = [clock.monotonicMs() - startedMs, clock.nowMs()];
    const dateMs = Date.parse(exchange.header('date') ?? '');
    await exchange.end();
    const facts = { url: url.href, answer: { status: exchange.status, tookMs }, nowMs };
    // The server spoke in the middle of it, and of a whole second only.
    return Number.isNaN(dateMs) ? { facts } : { facts, aheadMs: nowMs - tookMs / 2 - (dateMs + 500) };
  } finally {
    await door.close();
  }
}

async function askFile(url: URL, { clock, version, config }: LookOptions): Promise<MirrorLook> {
  const source = openRepositorySource(url.href, { clock, version });
  const startedMs = clock.monotonicMs();
  try {
    const maxBytes = metadataBytesByRole(config.metadataLimits).timestamp;
    const { kind } = await source.fetch(timestampPath, { maxBytes });
    const answer = { status: kind === 'absent' ? 404 : 200, tookMs: clock.monotonicMs() - startedMs };
    return { facts: { url: url.href, answer, nowMs: clock.nowMs() } };
  } finally {
    await source.close();
  }
}

async function certificateOf(url: URL): Promise<number | undefined> {
  if (url.protocol !== 'https:') return undefined;
  const port = url.port === '' ? 443 : Number(url.port);
  return certificateEndsAtMs({ host: hostOf(url), port, timeoutMs: connectTimeoutMs });
}

/** Without the brackets of an IPv6 address. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
}

const maxEtcBytes = 1_000_000;

/** @param etc directory of resolv.conf and hosts */
export function nameFacts(
  { repository }: Pick<AgentConfig, 'repository'>,
  etc: string,
): Omit<NameFacts, 'resolverGroups'> {
  const urls = repository.map((mirror) => new URL(mirror.url)).filter(({ protocol }) => protocol !== 'file:');
  const names = urls.map(hostOf).filter((host) => !/^[\d.]+$|:/.test(host));
  const nameservers = linesOf(`${etc}/resolv.conf`)
    .filter(([first]) => first === 'nameserver')
    .flatMap(([, address = '']) => address);
  const known = linesOf(`${etc}/hosts`).flatMap(([, ...words]) => words.map((word) => word.toLowerCase()));
  return { names: [...new Set(names)], known, nameservers };
}

function linesOf(path: string): string[][] {
  const read = readSmallFile(path, { maxBytes: maxEtcBytes });
  const text = read.kind === 'read' ? read.bytes.toString('utf8') : '';
  return text.split('\n').map((line) => line.replace(/#.*/, '').trim().split(/\s+/));
}
