// Two days of a host by chance, in virtual time: publishers, servers, networks, clocks, disks, workers and people do what
// they do, the agent lives on, and behind every event what must hold is looked at. The agent is the composition of the
// daemon, in this process, with every file, socket and request real; what waits by the clock waits virtually.
//
// Not virtual, and so played at a low rate: time-outs of HTTP requests (1 to 5 s here), programs of checks and probes,
// flushes. Kills are at labelled operations of the disk, in this process: SIGKILL is test/exhaustive/kills', power cuts are
// test/exhaustive/replay's. In the first quarter agents are restarted and killed; from then on one lives to the end, for a leak
// would end with its agent.

import { getEventListeners } from 'node:events';
import * as fs from 'node:fs';
import { setTimeout as realSleep } from 'node:timers/promises';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import { seeded } from '../../kit/assert/seeded.js';
import { Killed } from '../../kit/disk/operation-trap.js';
import { memory, tempDir } from '../../kit/disk/temp-dir.js';
import { type LifeEvent, lifeEvents } from './life-events.js';
import {
  bytes,
  collector,
  descriptors,
  type Growth,
  growth,
  leaks,
  type Measured,
  timers,
} from './life-meters.js';
import { bundles } from './life-publisher.js';
import { lifeRules, type Rules } from './life-rules.js';
import { lifeWorld, type World } from './life-world.js';

export interface LifeOptions {
  readonly seed: number;
  /** Virtual. */
  readonly hours: number;
  /** A manifest of a bomb; 8 MB by default. */
  readonly bombBytes?: number;
  /** At each end of a poll: shows that a leak is found. */
  readonly leak?: () => void;
  /** Only these events, by a part of the name; all by default. */
  readonly only?: string;
  /** Ends it at the end of an hour. */
  readonly stop?: AbortSignal;
  /** Called at the end of each hour. */
  readonly onHour?: (hour: number, measured: Measured, world: World) => void;
}

export interface LifeEnd {
  readonly violations: readonly string[];
  readonly counts: ReadonlyMap<string, number>;
  readonly series: readonly Measured[];
  readonly growth: readonly Growth[];
  readonly leaks: readonly Growth[];
  readonly seconds: number;
}

const hourMs = 3_600_000;
/** Between two events; now and then a longer one. */
const maxPauseMs = 240_000;

export async function live(options: LifeOptions): Promise<LifeEnd> {
  const { seed, hours, bombBytes = 8_000_000, leak = () => undefined } = options;
  const startedMs = performance.now();
  using dir = tempDir(memory());
  const onEnd = ({ result }: CycleEnd): void => void (result.trigger === 'poll' && leak());
  const world = await lifeWorld({ dir, random: seeded(seed), bombBytes, onEnd });
  const stopHearing = hearRejections(world);
  const rules = lifeRules(world);
  const series: Measured[] = [];
  const collect = collector();
  try {
    for (const bundle of bundles) world.publisher.publish(bundle, 'good');
    await world.start();
    for (let hour = 0; hour < hours && !options.stop?.aborted; hour++) {
      await liveHour(world, rules, eventsOf(options, hour < hours / 4));
      await rules.calm();
      rules.look();
      const measured = await measure(world, collect);
      series.push(measured);
      options.onHour?.(hour, measured, world);
    }
    await world.end();
  } finally {
    for (const worker of world.workers) worker.leave();
    await world.server.close();
    stopHearing();
  }
  const { violations } = world.story;
  const counts = new Map([...world.story.counts(), ['http requests', world.server.requests()]]);
  const seconds = (performance.now() - startedMs) / 1000;
  return { violations, counts, series, growth: growth(series), leaks: leaks(series), seconds };
}

function eventsOf({ only = '' }: LifeOptions, mayEnd: boolean): LifeEvent[] {
  const all = lifeEvents.filter(({ name, agent }) => name.includes(only) && (mayEnd || agent === 'lives on'));
  return all.flatMap((one) => Array.from({ length: one.weight }, () => one));
}

async function liveHour(world: World, rules: Rules, events: readonly LifeEvent[]): Promise<void> {
  const { clock, drive, random, story, workers } = world;
  const endMs = clock.trueMs() + hourMs;
  while (clock.trueMs() < endMs) {
    const { name, act } = random.pick(events);
    story.count('events');
    story.count(`event: ${name}`);
    story.event(name);
    story.event(`  ${name}: ${await act(world)}`);
    for (const worker of workers) if (random.once(2)) worker.beThere();
    await drive.pass(random.int(random.once(25) ? 8 * maxPauseMs : maxPauseMs));
    if (world.agent().state() === 'over') await restartDead(world);
    rules.look();
  }
}

/** It may end by itself where it cannot start, and never later. */
async function restartDead(world: World): Promise<void> {
  world.story.count('agents that had to be started again');
  await world.start();
}

/** A rejection that nobody handles ends a real agent; but not of one that is dead. */
function hearRejections({ story }: World): () => void {
  const hear = (error: unknown): void => {
    if (!(error instanceof Killed)) story.violate(`nobody handles ${(error as Error)?.stack ?? error}`);
  };
  process.on('unhandledRejection', hear);
  return () => process.off('unhandledRejection', hear);
}

/** All is right, and nothing is under way. */
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
