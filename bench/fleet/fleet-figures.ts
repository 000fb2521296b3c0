// What a fleet server carries, over real HTTP with real signatures, on each store that is here: reports a second, its processor and memory,
// and the first screen with many hosts stored. The load comes from this process; its own share is a figure beside.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type FleetStore, openFleetStore } from '../../src/fleet/store/open-store.js';
import { createToken } from '../../src/fleet/tokens/tokens.js';
import { silentLog } from '../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../src/platform/time/clock.js';
import { startWrit } from '../../test/kit/cli/writ-process.js';
import { needsPostgres, startPostgres } from '../../test/kit/fleet/real-postgres.js';
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

/** @param directory for the stores, made here; the database's own user must be able to reach it */
export async function fleetFigures(
  directory: string,
  size: FleetSize,
  say: (progress: string) => void,
): Promise<readonly Figure[]> {
  mkdirSync(directory, { mode: 0o755 });
  say(`a fleet of ${size.hosts} hosts, embedded`);
  const embedded = await figuresOn({ name: 'embedded', location: join(directory, 'store') }, size);
  if (needsPostgres().skip !== undefined) return embedded;
  say(`a fleet of ${size.hosts} hosts, PostgreSQL`);
  mkdirSync(join(directory, 'postgres'));
  await using postgres = await startPostgres(join(directory, 'postgres'));
  const onPostgres = { name: 'PostgreSQL', location: await postgres.newDatabase(), pid: postgres.pid() };
  return [...embedded, ...(await figuresOn(onPostgres, size))];
}

interface Place {
  readonly name: string;
  readonly location: string;
  /** Of the database, where it is another process. */
  readonly pid?: number;
}

async function figuresOn(
  { name, location, pid: database }: Place,
  size: FleetSize,
): Promise<readonly Figure[]> {
  const { store, hosts, token } = await filled(location, size);
  await store.close();
  const serve = ['fleet', 'serve', '--store', location, '--listen', '127.0.0.1:0'];
  // Its log into nothing: a pipe costs whoever reads it.
  await using server = startWrit(serve, {}, { under: ['sh', '-c', 'exec "$@" 2>/dev/null', 'sh'] });
  const [, address = ''] = await server.waitForStdout(/LISTENING (\S+)/);
  const url = new URL(address);
  const pid = server.child.pid ?? 0;
  const load = { url, fleet: store.fleetId, hosts, rounds: size.rounds, pid, database };
  const figures: Figure[] = [];
  const screenMs = await firstScreenMs(url, token);
  figures.push({
    name: `fleet, ${name}: first screen with ${size.hosts} hosts`,
    value: screenMs,
    unit: 'ms',
  });
  for (const kind of ['changed', 'keepalive'] as const) {
    const { rate, serverMs, databaseMs, ownMs, waitMs } = await reportRate({ ...load, kind });
    const what = kind === 'changed' ? 'changed reports' : 'keepalives';
    figures.push(
      { name: `fleet, ${name}: signed ${what}`, value: rate, unit: 'reports/s' },
      { name: '- processor of the server, each', value: serverMs, unit: 'ms' },
      ...(databaseMs === undefined
        ? []
        : [{ name: '- processor of the database, each', value: databaseMs, unit: 'ms' as const }]),
      { name: '- processor of the load, each', value: ownMs, unit: 'ms' },
      { name: '- waited for the answer, 99 of 100', value: waitMs, unit: 'ms' },
    );
  }
  return [
    ...figures,
    { name: `fleet, ${name}: resident behind it`, value: residentBytesOf(pid) / 1e6, unit: 'MB' },
  ];
}

interface Filled {
  readonly store: FleetStore;
  readonly hosts: readonly KeyedHost[];
  readonly token: string;
}

async function filled(location: string, { hosts: count, keyed }: FleetSize): Promise<Filled> {
  const nowMs = systemClock.nowMs();
  const store = await openFleetStore(location, { clock: systemClock, log: silentLog() });
  const hosts = await storeHosts(store, { hosts: count, keyed, nowMs, everyMs });
  const { token } = await createToken(store.db, { kind: 'people', role: 'view' }, { who: 'bench', nowMs });
  return { store, hosts, token };
}

/** Median of eleven, behind three. */
async function firstScreenMs(url: URL, token: string): Promise<number> {
  const times: number[] = [];
  for (let look = 0; look < 14; look++) {
    const atMs = performance.now();
    const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    const text = await answer.text();
    if (!answer.ok || !text.includes('dns-edge')) throw new Error(`the first screen: ${answer.status}`);
    if (look >= 3) times.push(performance.now() - atMs);
  }
  return times.sort((a, b) => a - b)[5] ?? Number.NaN;
}

interface Load {
  readonly url: URL;
  readonly fleet: string;
  readonly hosts: readonly KeyedHost[];
  readonly rounds: number;
  readonly pid: number;
  readonly database: number | undefined;
  readonly kind: 'changed' | 'keepalive';
}

interface Rate {
  readonly rate: number;
  readonly serverMs: number;
  readonly databaseMs: number | undefined;
  readonly ownMs: number;
  readonly waitMs: number;
}

async function reportRate({ url, fleet, hosts, rounds, pid, database, kind }: Load): Promise<Rate> {
  const nowMs = systemClock.nowMs();
  const requestsOf = (host: KeyedHost): Promise<Buffer[]> =>
    Promise.all(
      Array.from({ length: rounds }, (_, round) => {
        const serial = kind === 'changed' ? 42 + round : 41 + rounds;
        const body = JSON.stringify(
          sampleReport({ number: host.number, atMs: nowMs + round, everyMs, serial }),
        );
        const counter = round + (kind === 'changed' ? 2 : 2 + rounds);
        return signedRequest({ url, fleet }, host, { body, counter, nowMs });
      }),
    );
  const byHost: Buffer[][] = [];
  for (const host of hosts) byHost.push(await requestsOf(host));
  const databaseCpuMs = database === undefined ? 0 : cpuMsOfTree(database);
  const [cpuMs, own, atMs] = [cpuMsOf(pid), process.cpuUsage(), performance.now()];
  const waits = (await sendAll({ url, connections }, byHost)).sort();
  const wallMs = performance.now() - atMs;
  const mine = process.cpuUsage(own);
  return {
    rate: (waits.length * 1000) / wallMs,
    serverMs: (cpuMsOf(pid) - cpuMs) / waits.length,
    databaseMs: database && (cpuMsOfTree(database) - databaseCpuMs) / waits.length,
    ownMs: (mine.user + mine.system) / 1000 / waits.length,
    waitMs: waits[Math.floor(waits.length * 0.99)] ?? Number.NaN,
  };
}
