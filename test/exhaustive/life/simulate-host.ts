// Simulates two days of a host in virtual time with random events: publishers, servers, networks, clocks, disks, workers and
// people act, the agent continues, and the rules are checked after each event. The agent is the composition of the daemon, in
// this process, with real files, sockets and requests; only waits by the clock are virtual. Some work takes real time, so its
// rate is low: timeouts of HTTP requests (1 to 5 s here), programs of checks and probes, flushes. Kills happen at labelled
// operations of the disk, in this process; test/exhaustive/kills covers SIGKILL, test/exhaustive/replay power cuts. Events
// restart and kill agents in the first quarter only. After it one agent runs to the end, because a leak would end with its
// agent.

import { getEventListeners } from 'node:events';
import * as fs from 'node:fs';
import { setTimeout as realSleep } from 'node:timers/promises';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import { seeded } from '../../kit/assert/seeded.js';
import { Killed } from '../../kit/disk/operation-trap.js';
import { memory, tempDir } from '../../kit/disk/temp-dir.js';
import { type HostEvent, hostEvents } from './host-events.js';
import { hostRules, type Rules } from './host-rules.js';
import {
  bytes,
  collector,
  descriptors,
  type Growth,
  growth,
  leaks,
  type Measured,
  timers,
} from './leak-meters.js';
import { bundles } from './simulated-publisher.js';
import { createWorld, type World } from './world.js';

export interface SimulationOptions {
  readonly seed: number;
  /** Virtual hours. */
  readonly hours: number;
  /** The length of a bomb's manifest; 8 MB by default. */
  readonly bombBytes?: number;
  /** Called after each poll: plants a leak, which the simulation must find. */
  readonly leak?: () => void;
  /** Part of the names of the events; all events by default. */
  readonly only?: string;
  /** Stops the simulation at the end of an hour. */
  readonly stop?: AbortSignal;
  /** Called at the end of each hour. */
  readonly onHour?: (hour: number, measured: Measured, world: World) => void;
}

export interface SimulationResult {
  readonly violations: readonly string[];
  readonly counts: ReadonlyMap<string, number>;
  readonly series: readonly Measured[];
  readonly growth: readonly Growth[];
  readonly leaks: readonly Growth[];
  readonly seconds: number;
}

const hourMs = 3_600_000;
/** The longest usual pause between two events. */
const maxPauseMs = 240_000;

export async function simulateHost(options: SimulationOptions): Promise<SimulationResult> {
  const { seed, hours, bombBytes = 8_000_000, leak = () => undefined } = options;
  const startedMs = performance.now();
  using dir = tempDir(memory());
  const onEnd = ({ result }: CycleEnd): void => void (result.trigger === 'poll' && leak());
  const world = await createWorld({ dir, random: seeded(seed), bombBytes, onEnd });
  const stopRecording = recordRejections(world);
  const rules = hostRules(world);
  const series: Measured[] = [];
  const collect = collector();
  try {
    for (const bundle of bundles) world.publisher.publish(bundle, 'good');
    await world.start();
    for (let hour = 0; hour < hours && !options.stop?.aborted; hour++) {
      await simulateHour(world, rules, eventsOf(options, hour < hours / 4));
      await rules.recover();
      rules.checkReaders();
      const measured = await measure(world, collect);
      series.push(measured);
      options.onHour?.(hour, measured, world);
    }
    await world.end();
  } finally {
    for (const worker of world.workers) worker.leave();
    await world.server.close();
    stopRecording();
  }
  const { violations } = world.log;
  const counts = new Map([...world.log.counts(), ['http requests', world.server.requests()]]);
  const seconds = (performance.now() - startedMs) / 1000;
  return { violations, counts, series, growth: growth(series), leaks: leaks(series), seconds };
}

function eventsOf({ only = '' }: SimulationOptions, mayEnd: boolean): HostEvent[] {
  const all = hostEvents.filter(
    ({ name, agent }) => name.includes(only) && (mayEnd || agent === 'continues'),
  );
  return all.flatMap((one) => Array.from({ length: one.weight }, () => one));
}

async function simulateHour(world: World, rules: Rules, events: readonly HostEvent[]): Promise<void> {
  const { clock, drive, random, log, workers } = world;
  const endMs = clock.trueMs() + hourMs;
  while (clock.trueMs() < endMs) {
    const { name, act } = random.pick(events);
    log.count('events');
    log.count(`event: ${name}`);
    log.event(name);
    log.event(`  ${name}: ${await act(world)}`);
    for (const worker of workers) if (random.once(2)) worker.connect();
    await drive.pass(random.int(random.once(25) ? 8 * maxPauseMs : maxPauseMs));
    if (world.agent().state() === 'over') await restartDead(world);
    rules.checkReaders();
  }
}

/** An agent may end by itself only when its start fails. */
async function restartDead(world: World): Promise<void> {
  world.log.count('agents that had to be started again');
  await world.start();
}

/**
 * Records each unhandled rejection as a violation, because it would end a real agent. Rejections of a killed agent do
 * not count.
 */
function recordRejections({ log }: World): () => void {
  const record = (error: unknown): void => {
    if (!(error instanceof Killed)) log.violate(`unhandled rejection: ${(error as Error)?.stack ?? error}`);
  };
  process.on('unhandledRejection', record);
  return () => process.off('unhandledRejection', record);
}

/** Measures the host when every fault has ended and no work is pending. */
async function measure(world: World, collect: () => void): Promise<Measured> {
  const { drive, server, clock, places } = world;
  await drive.pass(5000);
  server.endConnections();
  await realSleep(20);
  await drive.pass(10);
  const { signal } = world.agent().stop;
  return {
    descriptors: descriptors(),
    timers: timers(),
    sleepers: clock.sleeping(),
    listeners: getEventListeners(signal, 'abort').length + process.listenerCount('exit'),
    bytes: bytes(collect),
    entries: fs.readdirSync(places.paths.state, { recursive: true }).length,
  };
}
