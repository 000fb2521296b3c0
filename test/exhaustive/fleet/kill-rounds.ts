// Kills an ingest process amid its batches, and checks its store afterwards: every acknowledged report, and counts that equal
// a recount of the rows. Runs many rounds on one store, as a server that restarts.
import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { openFleetStore } from '../../../src/fleet/store/open-store.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { startScript } from '../../kit/cli/child-script.js';
import { assertRecount } from '../../kit/fleet/assert-recount.js';
import { fleetBench } from '../../kit/fleet/fleet-bench.js';
import { isGone } from '../../kit/programs/processes.js';

const hostCount = 40;

/** The delay of a kill after the first response, one round each. */
export const killDelaysMs: readonly number[] = Array.from({ length: 15 }, (_, at) => at * 23);

export async function killRounds(location: string, delaysMs: readonly number[]): Promise<void> {
  const keys = await enrolAll(location);
  const acknowledged = new Map<string, number>();
  for (const delayMs of delaysMs) {
    const output = await killedAfter(location, keys, delayMs);
    for (const [keyId, counter] of output)
      acknowledged.set(keyId, Math.max(counter, acknowledged.get(keyId) ?? 0));
    await checkStore(location, acknowledged);
  }
  const rounds = [...acknowledged.values()];
  assert.ok(rounds.length === hostCount, 'each host was answered at least once');
}

async function enrolAll(location: string): Promise<readonly string[]> {
  await using bench = await fleetBench(location, systemClock);
  const { token } = await bench.token();
  const keys: string[] = [];
  for (let at = 0; at < hostCount; at++) keys.push((await bench.enrol(token, `host-${at}`)).keyId);
  return keys;
}

/** The process writes each response with one write: an incomplete line is no response. */
async function killedAfter(
  location: string,
  keys: readonly string[],
  delayMs: number,
): Promise<readonly (readonly [string, number])[]> {
  const script = `
    import { writeSync } from 'node:fs';
    const [{ openFleetStore }, { createIngest }, { systemClock }, { silentLog }, { bundleAt, reportOf, send }] =
      await Promise.all(['src/fleet/store/open-store.js', 'src/fleet/hosts/ingest.js', 'src/platform/time/clock.js',
        'src/platform/telemetry/silent-log.js', 'test/kit/fleet/fleet-bench.js'].map((name) => import(at(name))));
    const options = { clock: systemClock, log: silentLog() };
    const store = await openFleetStore(${JSON.stringify(location)}, options);
    const ingest = createIngest(store, options);
    const rows = await store.db.selectFrom('hosts').select(['key_id', 'host', 'counter']).execute();
    await Promise.all(rows.map(async ({ key_id, host, counter }) => {
      for (;;) {
        counter++;
        const report = reportOf(host, { bundles: [bundleAt(counter), bundleAt(counter % 3, { channel: 'canary' })] });
        const verdict = await send(ingest, { keyId: key_id, name: host, counter }, report);
        if (verdict.kind === 'accepted') writeSync(1, key_id + ' ' + counter + '\\n');
      }
    }));`;
  const { child, pid, firstLine } = startScript(script);
  const parts: Buffer[] = [];
  child.stdout?.on('data', (part: Buffer) => parts.push(part));
  await firstLine;
  await setTimeout(delayMs);
  const closed = new Promise((resolve) => child.once('close', resolve));
  child.kill('SIGKILL');
  await closed;
  assert.ok(await isGone(pid));
  const lines = Buffer.concat(parts).toString('utf8').split('\n').slice(0, -1);
  return lines.map((line) => {
    const [keyId = '', counter = ''] = line.split(' ');
    assert.ok(keys.includes(keyId));
    return [keyId, Number(counter)] as const;
  });
}

async function checkStore(location: string, acknowledged: ReadonlyMap<string, number>): Promise<void> {
  const store = await openFleetStore(location, { clock: systemClock, log: silentLog() });
  try {
    const rows = await store.db.selectFrom('hosts').select(['key_id', 'counter']).execute();
    for (const { key_id, counter } of rows)
      assert.ok(counter >= (acknowledged.get(key_id) ?? 0), `${key_id} lost a report`);
    const bundles = await store.db
      .selectFrom('host_bundles')
      .selectAll()
      .where('channel', '=', 'stable')
      .execute();
    const counters = new Map(rows.map(({ key_id, counter }) => [key_id, counter]));
    for (const { key_id, serial } of bundles) assert.equal(serial, counters.get(key_id), 'a half report');
    await assertRecount(store.db);
  } finally {
    await store.close();
  }
}
