// The capacity of a fleet server, over real HTTP with real signatures, on each available store: reports a second, its processor
// and memory, and the first screen with many stored hosts. The load comes from this process, with its own share as a figure.
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { sql } from 'kysely';
import { type FleetStore, openFleetStore } from '../../src/fleet/store/open-store.js';
import { createToken } from '../../src/fleet/tokens/tokens.js';
import type { TlsFiles } from '../../src/platform/serve/tls-files.js';
import { silentLog } from '../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../src/platform/time/clock.js';
import { startWrit } from '../../test/kit/cli/writ-process.js';
import { needsPostgres, startPostgres } from '../../test/kit/fleet/real-postgres.js';
import { makeCertificate } from '../../test/kit/net/certificate.js';
import type { Figure } from '../at-rest.js';
import { cpuMsOf, cpuMsOfTree, residentBytesOf } from '../measure/process-cost.js';
import { sampleReport } from './sample-host.js';
import { sendAll, signedRequest } from './signed-load.js';
import { type KeyedHost, storeHosts } from './stored-hosts.js';

export interface FleetSize {
  readonly hosts: number;
  /** That report. */
  readonly keyed: number;
  readonly rounds: number;
}

const everyMs = 300_000;
const connections = 512;
const requests = 12;
/** Longer than a summary is kept. */
const requestEveryMs = 1500;

/** Of what is stored, on the disk; closes the store. */
async function bytesOf(store: FleetStore, location: string): Promise<number> {
  if (store.kind === 'postgres') {
    // As in a store that has been there for a while: without it every plan is a guess.
    await sql`vacuum analyze`.execute(store.db);
    const size = await sql<{ bytes: number }>`select pg_database_size(current_database()) as bytes`.execute(
      store.db,
    );
    await store.close();
    return size.rows[0]?.bytes ?? Number.NaN;
  }
  await store.close();
  return readdirSync(location).reduce((sum, file) => sum + statSync(join(location, file)).size, 0);
}

/** @param directory for the stores, made here; the database's own user must be able to reach it */
export async function fleetFigures(
  directory: string,
  size: FleetSize,
  logStep: (progress: string) => void,
): Promise<readonly Figure[]> {
  mkdirSync(directory, { mode: 0o755 });
  logStep(`a fleet of ${size.hosts} hosts, embedded`);
  const embedded = await figuresOn(
    { name: 'embedded', location: join(directory, 'store'), certificates: directory },
    size,
  );
  if (needsPostgres().skip !== undefined) return embedded;
  logStep(`a fleet of ${size.hosts} hosts, PostgreSQL`);
  mkdirSync(join(directory, 'postgres'));
  await using postgres = await startPostgres(join(directory, 'postgres'));
  const location = await postgres.newDatabase();
  const onPostgres = { name: 'PostgreSQL', location, certificates: directory, pid: postgres.pid() };
  return [...embedded, ...(await figuresOn(onPostgres, size))];
}

interface Place {
  readonly name: string;
  readonly location: string;
  /** The directory in which one is made. */
  readonly certificates: string;
  /** Of the database, where it is another process. */
  readonly pid?: number;
}

async function figuresOn(
  { name, location, certificates, pid: database }: Place,
  size: FleetSize,
): Promise<readonly Figure[]> {
  const { store, hosts, watchedHost, token } = await filled(location, size);
  const storeBytes = await bytesOf(store, location);
  const fleet = { fleet: store.fleetId, hosts, rounds: size.rounds, database };
  const figures: Figure[] = [];
  {
    await using server = await serving(location);
    const screen = { ...server, fleet: store.fleetId, token, host: watchedHost };
    figures.push(...(await screenFigures(`fleet, ${name}: first screen with ${size.hosts} hosts`, screen)));
    for (const [at, kind] of kinds.entries()) {
      const rate = await reportRate({ ...fleet, ...server, kind, begunRounds: at * size.rounds });
      figures.push(...rateFigures(`fleet, ${name}: signed ${kind}`, rate));
    }
    const value = residentBytesOf(server.pid) / 1e6;
    figures.push({ name: `fleet, ${name}: resident after it`, value, unit: 'MB' });
  }
  // Another process, so that the memory of the first one is what it is without TLS.
  await using secure = await serving(location, await makeCertificate(certificates, name));
  const kind = kinds[2];
  const rate = await reportRate({ ...fleet, ...secure, kind, begunRounds: kinds.length * size.rounds });
  figures.push(...rateFigures(`fleet, ${name}: signed ${kind}, TLS`, rate));
  return [...figures, { name: '- its store before', value: storeBytes / 1e6, unit: 'MB' }];
}

interface Serving extends AsyncDisposable {
  readonly url: URL;
  readonly pid: number;
}

async function serving(location: string, tls?: TlsFiles): Promise<Serving> {
  const secured = tls === undefined ? [] : ['--tls-cert', tls.certFile, '--tls-key', tls.keyFile];
  const serve = ['fleet', 'serve', '--store', location, '--listen', '127.0.0.1:0', ...secured];
  // Its log is discarded, because a pipe costs its reader time.
  const server = startWrit(serve, {}, { under: ['sh', '-c', 'exec "$@" 2>/dev/null', 'sh'] });
  const [, address = ''] = await server.waitForStdout(/LISTENING (\S+)/);
  return {
    url: new URL(address),
    pid: server.child.pid ?? 0,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** In the order in which they are sent. */
const kinds = ['changed reports', 'keepalives', 'keepalives, a connection each'] as const;

function rateFigures(name: string, rate: Rate): Figure[] {
  const { databaseMs } = rate;
  const database: Figure[] =
    databaseMs === undefined
      ? []
      : [{ name: '- processor of the database, each', value: databaseMs, unit: 'ms' }];
  return [
    { name, value: rate.perSecond, unit: 'reports/s' },
    { name: '- processor of the server, each', value: rate.serverMs, unit: 'ms' },
    ...database,
    { name: '- processor of the load, each', value: rate.ownMs, unit: 'ms' },
    { name: '- waited for the answer, 99 of 100', value: rate.waitMs, unit: 'ms' },
    { name: '- sent and answered with headers, each', value: rate.bytes, unit: 'bytes' },
  ];
}

interface Screen {
  readonly url: URL;
  readonly pid: number;
  readonly fleet: string;
  readonly token: string;
  /** A host changes before each request, so that no cached answer is valid. */
  readonly host: KeyedHost;
}

/** Reports the longest beside the median, because a cached summary makes most requests short and some long. */
async function screenFigures(name: string, screen: Screen): Promise<Figure[]> {
  const times: number[] = [];
  let cpuMs = 0;
  for (let request = 0; request < requests; request++) {
    const serial = 1000 + request;
    const load = { ...screen, hosts: [screen.host], rounds: 1, kind: 'changed reports' } as const;
    const requests = await requestsOf(
      { ...load, database: undefined, begunRounds: request },
      screen.host,
      serial,
    );
    await sendAll({ url: screen.url, connections: 1, held: 'for all' }, [requests]);
    const [cpuBeforeMs, atMs] = [cpuMsOf(screen.pid), performance.now()];
    const answer = await fetch(screen.url, { headers: { authorization: `Bearer ${screen.token}` } });
    const text = await answer.text();
    times.push(performance.now() - atMs);
    cpuMs += cpuMsOf(screen.pid) - cpuBeforeMs;
    if (!answer.ok || !text.includes(String(serial))) throw new Error(`the first screen: ${answer.status}`);
    await setTimeout(requestEveryMs);
  }
  const [first = Number.NaN, ...others] = times;
  const sorted = others.sort((a, b) => a - b);
  return [
    {
      name: `${name}, each time changed`,
      value: sorted[Math.floor(sorted.length / 2)] ?? Number.NaN,
      unit: 'ms',
    },
    { name: '- the longest request', value: sorted.at(-1) ?? Number.NaN, unit: 'ms' },
    { name: '- the first request of all, after a start', value: first, unit: 'ms' },
    { name: '- processor of the server, a request', value: cpuMs / requests, unit: 'ms' },
  ];
}

interface Filled {
  readonly store: FleetStore;
  readonly hosts: readonly KeyedHost[];
  /** One more, which sends no load. */
  readonly watchedHost: KeyedHost;
  readonly token: string;
}

async function filled(location: string, { hosts: count, keyed }: FleetSize): Promise<Filled> {
  const nowMs = systemClock.nowMs();
  const store = await openFleetStore(location, { clock: systemClock, log: silentLog() });
  const [watchedHost, ...hosts] = await storeHosts(store, { hosts: count, keyed: keyed + 1, nowMs, everyMs });
  if (watchedHost === undefined) throw new Error('no host has a key');
  const { token } = await createToken(store.db, { kind: 'people', role: 'view' }, { who: 'bench', nowMs });
  return { store, hosts, watchedHost, token };
}

interface Load {
  readonly url: URL;
  readonly fleet: string;
  readonly hosts: readonly KeyedHost[];
  readonly rounds: number;
  readonly pid: number;
  readonly database: number | undefined;
  readonly kind: (typeof kinds)[number];
  /** That each host has sent before. */
  readonly begunRounds: number;
}

interface Rate {
  readonly perSecond: number;
  readonly serverMs: number;
  readonly databaseMs: number | undefined;
  readonly ownMs: number;
  readonly waitMs: number;
  readonly bytes: number;
}

async function reportRate(load: Load): Promise<Rate> {
  const { url, pid, database, kind } = load;
  const byHost: Buffer[][] = [];
  for (const host of load.hosts) byHost.push(await requestsOf(load, host));
  const databaseCpuMs = database === undefined ? 0 : cpuMsOfTree(database);
  const [cpuMs, own, atMs] = [cpuMsOf(pid), process.cpuUsage(), performance.now()];
  const held = kind === 'keepalives, a connection each' ? 'for each' : 'for all';
  const { waits, sentBytes, receivedBytes } = await sendAll({ url, connections, held }, byHost);
  const wallMs = performance.now() - atMs;
  const mine = process.cpuUsage(own);
  return {
    perSecond: (waits.length * 1000) / wallMs,
    serverMs: (cpuMsOf(pid) - cpuMs) / waits.length,
    databaseMs: database && (cpuMsOfTree(database) - databaseCpuMs) / waits.length,
    ownMs: (mine.user + mine.system) / 1000 / waits.length,
    waitMs: waits.sort()[Math.floor(waits.length * 0.99)] ?? Number.NaN,
    bytes: (sentBytes + receivedBytes) / waits.length,
  };
}

/** Each changed one has a release of its own; a keepalive repeats the last of them. */
function requestsOf(
  { url, fleet, rounds, kind, begunRounds }: Load,
  host: KeyedHost,
  firstSerial = 42,
): Promise<Buffer[]> {
  const nowMs = systemClock.nowMs();
  return Promise.all(
    Array.from({ length: rounds }, (_, round) => {
      const serial = kind === 'changed reports' ? firstSerial + round : 41 + rounds;
      const body = JSON.stringify(
        sampleReport({ number: host.number, atMs: nowMs + round, everyMs, serial }),
      );
      return signedRequest({ url, fleet }, host, { body, counter: 2 + begunRounds + round, nowMs });
    }),
  );
}
