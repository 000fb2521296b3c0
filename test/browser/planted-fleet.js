// A real fleet server with hosts planted in its store, as if they had reported. Server, queries and pages are the shipped
// ones; only the network between hosts and server is missing. Independent of a browser.
import { createHash, randomBytes } from 'node:crypto';

const dist = new URL('../../dist/', import.meta.url);
const load = (path) => import(new URL(path, dist).href);

const [
  { fleetBench, reportOf },
  { saveView },
  { startFleetServer },
  { createIngest },
  { silentLog },
  { systemClock },
] = await Promise.all([
  load('test/kit/fleet/fleet-bench.js'),
  load('src/fleet/repositories/repository-views.js'),
  load('src/fleet/http/fleet-server.js'),
  load('src/fleet/hosts/ingest.js'),
  load('src/platform/telemetry/silent-log.js'),
  load('src/platform/time/clock.js'),
]);
const { tempDir, memory } = await load('test/kit/disk/temp-dir.js');

/**
 * @param plant called before the server starts, with functions to plant hosts
 * @returns a running server, its address, a token of a person for each role, and functions to plant hosts
 */
export async function plantedFleet(plant) {
  const directory = tempDir(memory());
  const store = directory.join('store');
  const bench = await fleetBench(store, systemClock);
  const { db } = bench.store;
  const ingest = createIngest(bench.store, { clock: systemClock, log: silentLog() });
  const start = (port) =>
    startFleetServer({
      ...{ store, host: '127.0.0.1', port, clock: systemClock, log: silentLog() },
      processMetrics: 'omit',
    });
  const { token: enrolment } = await bench.token();
  const people = {};
  for (const role of ['view', 'detail', 'operate'])
    people[role] = (await bench.token({ kind: 'people', role })).token;
  const fleet = {
    people,
    enrol: (name) => bench.enrol(enrolment, name),
    /** Writes the rows of enrolled hosts. */
    enrolMany: async (names) => {
      const { keyId } = await bench.enrol(enrolment, 'pattern');
      const row = await db
        .selectFrom('hosts')
        .selectAll()
        .where('key_id', '=', keyId)
        .executeTakeFirstOrThrow();
      await db.deleteFrom('hosts').where('key_id', '=', keyId).execute();
      const hosts = names.map((name) => ({ name, counter: 2, keyId: randomBytes(32).toString('hex') }));
      const rows = hosts.map((one) => ({
        ...row,
        key_id: one.keyId,
        host: one.name,
        install_id: installIdOf(one),
      }));
      for (let from = 0; from < rows.length; from += 200)
        await db
          .insertInto('hosts')
          .values(rows.slice(from, from + 200))
          .execute();
      // Adds their counts, as each enrolment does; the count of the pattern exists.
      await db
        .updateTable('host_counters')
        .set((eb) => ({ count: eb('count', '+', names.length - 1) }))
        .where('state', '=', row.state)
        .where('agent', '=', row.agent)
        .where('slot', '=', row.slot)
        .where('version', '=', row.version)
        .execute();
      return hosts;
    },
    /** Writes the rows of a repository that another server of this fleet read. */
    repository: (view) => saveView(db, view.url, view),
    report: async (host, more) => {
      const report = reportOf(host.name, { installId: installIdOf(host), ...more });
      const body = Buffer.from(JSON.stringify(report));
      const bodyDigest = createHash('sha256').update(body).digest('hex');
      const signed = { kind: 'signed', keyId: host.keyId, counter: host.counter++, bodyDigest };
      const verdict = await ingest.take({ ...signed, fleet: '', createdAtMs: Date.now() }, body);
      if (verdict.kind !== 'accepted') throw new Error(JSON.stringify(verdict));
    },
  };
  await plant?.(fleet);
  let server = await start(0);
  const { url } = server;
  return Object.assign(fleet, {
    url,
    /** An address without a server. */
    stop: () => server.close(),
    startAgain: async () => {
      server = await start(Number(new URL(url).port));
    },
    end: async () => {
      await server.close();
      await ingest.close();
      await bench[Symbol.asyncDispose]();
      directory[Symbol.dispose]();
    },
  });
}

/** Names may be hostile; the id of an installation is made here. */
const installIdOf = ({ name, keyId }) =>
  /^[\w-]{1,40}$/.test(name) ? `install-${name}` : `install-${keyId.slice(0, 16)}`;

const day = 86_400_000;
const digest = (serial) => serial.toString(16).padStart(64, '7');

/** @returns members of a report by a host that runs `serial` of dns-edge and 9 of access */
export function running(serial, { state = 'confirmed', offered, ...more } = {}) {
  const now = Date.now();
  const sinceMs = now - 3_600_000 + ((serial * 7919 + (more.turn ?? 0) * 104_729) % 3_500_000);
  const active = { serial, manifest: digest(serial), sinceMs, state };
  const access = { serial: 9, manifest: digest(9), sinceMs: now - 20 * day, state: 'confirmed' };
  return {
    generation: 18,
    atMs: now,
    labels: { site: ['fra', 'ams', 'lhr'][(more.turn ?? 0) % 3], role: 'edge' },
    root: { version: more.root ?? 2, sha256: 'c'.repeat(64) },
    trust: [
      { role: 'timestamp', version: 1310, expiresAtMs: now + 6.2 * day },
      { role: 'snapshot', version: 220, expiresAtMs: now + 29 * day },
      { role: 'targets', version: 41, expiresAtMs: now + 340 * day },
      { role: 'root', version: 2, expiresAtMs: now + 211 * day },
    ],
    groups: [{ group: 'resolver', workers: 2, confirmed: state === 'confirmed' ? 2 : 1, min: 1 }],
    bundles: [
      { bundle: 'dns-edge', channel: 'stable', active, ...(offered === undefined ? {} : { offered }) },
      { bundle: 'access', channel: 'stable', active: access },
    ],
    ...more.report,
  };
}

/** @returns the view of a repository that signed 40, 41 and 42 of dns-edge, and 9 of access */
export function signedRepository(url) {
  const now = Date.now();
  const entry = (bundle, serial, ageMs) => ({
    ...{ bundle, channel: 'stable', serial, manifest: digest(serial), manifestBytes: 2100 },
    ...{ archive: digest(serial + 100), archiveBytes: 61_000, revision: `r${serial}`, role: 'targets' },
    ...{ createdAtMs: now - ageMs, seenAtMs: now - ageMs, requires: [], stamps: [], withdrawn: [] },
  });
  const role = (name, version, days) => ({ role: name, version, expiresAtMs: now + days * day });
  return {
    ...{ url, checkedAtMs: now, triedAtMs: now, roots: ['b'.repeat(64), 'c'.repeat(64)] },
    roles: [
      role('timestamp', 1310, 6.2),
      role('snapshot', 220, 29),
      role('targets', 41, 340),
      role('root', 2, 211),
    ],
    entries: [entry('access', 9, 20 * day), entry('dns-edge', 42, 3_600_000)],
    past: [entry('dns-edge', 41, 9 * day), entry('dns-edge', 40, 16 * day)],
  };
}

/** @returns the outcome of a release that the host's check refused */
export function refusal(serial, line = 'block.rpz:214: invalid IPv4 address') {
  return { serial, state: 'refused', code: 'CHECK_FAILED', atMs: Date.now() - 240_000, line };
}
