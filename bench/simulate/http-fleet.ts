// A few hosts in real time over real HTTP: each with a key and a state of its own, the agent's schedule, its exchange (enrolment, signature,
// counter, challenge) and its retries, against `writ fleet serve` as a process, which is ended for a while and started again.
import { setMaxListeners } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type FleetHostState, openHostState } from '../../src/agent/fleet/host-state.js';
import { ReportTimes } from '../../src/agent/fleet/report-times.js';
import { sendReport } from '../../src/agent/fleet/send-report.js';
import type { FleetConfig } from '../../src/core/config/config.js';
import { toWritError } from '../../src/core/errors.js';
import { openFleetStore } from '../../src/fleet/store/open-store.js';
import { createToken } from '../../src/fleet/tokens/tokens.js';
import { createDurableFs } from '../../src/platform/disk/durable-fs.js';
import { silentLog } from '../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../src/platform/time/clock.js';
import { startWrit, type WritProcess } from '../../test/kit/cli/writ-process.js';
import { freePort } from '../../test/kit/programs/free-port.js';
import { identityOfSample, sampleReport } from '../fleet/sample-host.js';

export interface HttpFleetOptions {
  readonly hosts: number;
  readonly everyMs: number;
  /** How long the server is there, then not, then there again, in intervals. */
  readonly intervals: readonly [before: number, away: number, after: number];
}

export interface HttpFleet {
  /** Reports that were stored before the outage, and after it. */
  readonly stored: readonly [before: number, after: number];
  /** Failed attempts, by their code. */
  readonly failed: Readonly<Record<string, number>>;
  /** Hosts that reported their change after the outage. */
  readonly healed: number;
}

interface FleetRun {
  readonly config: FleetConfig;
  readonly stop: AbortSignal;
  /** Grows when there is something new to report. */
  serial: number;
  phase: 0 | 1;
  readonly stored: [before: number, after: number];
  readonly failed: Record<string, number>;
  healed: number;
}

export async function runHttpFleet({ hosts, everyMs, intervals }: HttpFleetOptions): Promise<HttpFleet> {
  const directory = mkdtempSync(join(tmpdir(), 'writ-simulate-'));
  const listen = `127.0.0.1:${await freePort()}`;
  const stop = new AbortController();
  // Each host waits for it, more than once.
  setMaxListeners(0, stop.signal);
  const config = {
    url: `http://${listen}`,
    tokenFile: join(directory, 'token'),
    everyMs,
    ...({ detail: 'codes', stay: 'lasting', claim: 'new' } as const),
  } as const;
  const fleetRun: FleetRun = {
    config,
    stop: stop.signal,
    serial: 1,
    phase: 0,
    stored: [0, 0],
    failed: {},
    healed: 0,
  };
  try {
    const store = join(directory, 'store');
    writeFileSync(config.tokenFile, await newToken(store));
    const first = await serve(store, listen);
    const hostRuns = Array.from({ length: hosts }, (_, number) =>
      runHost(fleetRun, number, join(directory, `host-${number}`)),
    );
    await setTimeout(intervals[0] * everyMs);
    await end(first);
    fleetRun.serial++;
    await setTimeout(intervals[1] * everyMs);
    fleetRun.phase = 1;
    const second = await serve(store, listen);
    await setTimeout(intervals[2] * everyMs);
    stop.abort();
    await Promise.all(hostRuns);
    await end(second);
    return { stored: fleetRun.stored, failed: fleetRun.failed, healed: fleetRun.healed };
  } finally {
    stop.abort();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function newToken(location: string): Promise<string> {
  const store = await openFleetStore(location, { clock: systemClock, log: silentLog() });
  const { token } = await createToken(
    store.db,
    { kind: 'hosts' },
    { who: 'simulate', nowMs: systemClock.nowMs() },
  );
  await store.close();
  return token;
}

async function serve(store: string, listen: string): Promise<WritProcess> {
  const server = startWrit(['fleet', 'serve', '--store', store, '--listen', listen]);
  await server.waitForStdout(/LISTENING (\S+)/);
  return server;
}

async function end(server: WritProcess): Promise<void> {
  server.child.kill('SIGTERM');
  await server.ended;
}

async function runHost(fleetRun: FleetRun, number: number, directory: string): Promise<void> {
  mkdirSync(directory);
  const identity = identityOfSample(number);
  const { installId } = identity;
  const state = openHostState({ directory: join(directory, 'fleet'), durable: createDurableFs(), installId });
  const times = new ReportTimes({
    clock: () => systemClock,
    installId: () => installId,
    random01: Math.random,
  });
  let reportedSerial = 0;
  while (!fleetRun.stop.aborted) {
    const waitMs = times.untilDue(fleetRun.config, reportedSerial < fleetRun.serial);
    // Checked again soon, because a change may occur in between.
    if (waitMs > 0) await systemClock.sleep(Math.min(waitMs, 200), fleetRun.stop);
    else reportedSerial = await attempt(fleetRun, { number, state, times, reportedSerial });
  }
}

interface Attempt {
  readonly number: number;
  readonly state: FleetHostState;
  readonly times: ReportTimes;
  readonly reportedSerial: number;
}

/** @returns the serial that the server was sent */
async function attempt(
  fleetRun: FleetRun,
  { number, state, times, reportedSerial }: Attempt,
): Promise<number> {
  const { config, stop, serial } = fleetRun;
  times.began();
  try {
    const direct = { proxies: () => undefined, signal: stop };
    const exchange = { config, state, clock: systemClock, timeoutMs: 10_000, ...direct };
    const { everyMs } = await sendReport(exchange, identityOfSample(number), () =>
      sampleReport({ number, atMs: systemClock.nowMs(), everyMs: config.everyMs, serial }),
    );
    times.stored(config, everyMs);
    fleetRun.stored[fleetRun.phase]++;
    if (reportedSerial < serial && serial > 1) fleetRun.healed++;
    return serial;
  } catch (error) {
    if (stop.aborted) return reportedSerial;
    const { code, facts } = toWritError(error);
    fleetRun.failed[code] = (fleetRun.failed[code] ?? 0) + 1;
    times.failed(config, 'failed', facts['retryAfterMs']);
    return reportedSerial;
  }
}
