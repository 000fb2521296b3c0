// The random events of a simulated host: each row is an event of publishers, servers, networks, clocks, disks, workers or
// people. Owns the actions; host-rules.ts owns the conditions that must hold after each of them.
import * as fs from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { damageCases, doHarm } from '../damage/state-harms.js';
import { diskFaults } from './faulty-disk.js';
import { serverFaults } from './faulty-server.js';
import { bundles } from './simulated-publisher.js';
import { workerBehaviours } from './simulated-worker.js';
import type { World } from './world.js';

/** @returns the parameters that the seed chose, for the event log */
type Act = (world: World) => Promise<string> | string;

export interface HostEvent {
  readonly name: string;
  /** The relative frequency of the event. */
  readonly weight: number;
  /** `agentEnds`: the agent does not simulateHost on. */
  readonly agent: 'continues' | 'ends';
  readonly act: Act;
}

const secondMs = 1000;
const hourMs = 3_600_000;
const yearMs = 365 * 24 * hourMs;
const by = 'life';

/** Errors of a clock, up to decades, that signedOffset applies forwards or backwards. */
const clockErrors = [
  secondMs,
  90 * secondMs,
  hourMs,
  30 * hourMs,
  40 * 24 * hourMs,
  yearMs,
  15 * yearMs,
  35 * yearMs,
];

const agentContinues: Readonly<Record<string, readonly [number, Act]>> = {
  'publish a good release': [6, (world) => published(world, 'good')],
  'publish what a check refuses': [2, (world) => published(world, 'refused')],
  'publish what workers refuse': [2, (world) => published(world, 'nacked')],
  'publish a bomb': [1, ({ publisher, random }) => publisher.publishBomb(random.pick(bundles))],
  'keys change': [1, ({ publisher }) => publisher.rotate()],
  'metadata is signed again': [2, withoutText(({ publisher }) => publisher.sign())],
  'the clock of the publisher is wrong': [1, signWrong],
  'the server fails': [6, failServer],
  'the server is right': [
    3,
    ({ server }) => {
      server.fault = undefined;
      return '';
    },
  ],
  'the clock of the server is wrong': [
    1,
    ({ server, random }) => {
      server.wrongByMs = signedOffset(random.pick(clockErrors), random.once(2));
      return String(server.wrongByMs);
    },
  ],
  'the clock of the host jumps': [3, jump],
  'the clock of the host is set right': [2, withoutText(({ clock }) => clock.setWrongBy(0))],
  'the disk fails': [4, failDisk],
  'the disk is right': [3, withoutText(({ agent }) => agent().disk.heal())],
  'an entry of the state is harmed': [2, harm],
  'a worker changes': [4, changeWorker],
  'many reloads': [2, reloads],
  'a wrong configuration': [
    1,
    (world) => {
      fs.writeFileSync(world.places.configPath, world.random.pick(['{', '{"bundles":[]}', '\0', '[]']));
      world.agent().reload();
      return '';
    },
  ],
  pull: [8, async (world) => answerOf(await world.ask({ type: 'pull', force: world.random.once(4), by }))],
  'many pulls': [1, manyPulls],
  rollback: [2, rollback],
  pause: [1, pause],
  resume: [2, async (world) => answerOf(await world.ask({ type: 'resume', by }))],
  verify: [
    2,
    async (world) => answerOf(await world.ask({ type: 'verify', repair: world.random.once(2), by })),
  ],
  'queries that only read': [3, queryAgent],
  forget: [1, async (world) => answerOf(await world.ask({ type: 'forget', by }))],
  'the history is long': [1, lengthenHistory],
};

const agentEnds: Readonly<Record<string, readonly [number, Act]>> = {
  'the agent is restarted': [3, restart],
  'the agent is killed': [12, kill],
};

export const hostEvents: readonly HostEvent[] = [
  ...rows(agentContinues, 'continues'),
  ...rows(agentEnds, 'ends'),
];

function rows(table: typeof agentContinues, agent: HostEvent['agent']): HostEvent[] {
  return Object.entries(table).map(([name, [weight, act]]) => ({ name, weight, agent, act }));
}

/** Wraps an event without parameters for the log. */
function withoutText(act: (world: World) => void): Act {
  return (world) => {
    act(world);
    return '';
  };
}

function signedOffset(ms: number, isBehind: boolean): number {
  return isBehind ? -ms : ms;
}

function published({ publisher, random }: World, kind: 'good' | 'refused' | 'nacked'): string {
  const bundle = kind === 'refused' ? 'dns-edge' : random.pick(bundles);
  return `${bundle} ${publisher.publish(bundle, kind)}`;
}

/**
 * Sets the publisher's clock wrong by less than the validity period of metadata. Metadata signed decades ahead needs a
 * person (test/scenario/clocks). Hosts defer a release that is more than ten minutes ahead.
 */
function signWrong({ publisher, random }: World): string {
  const offsetMs = random.pick([-30 * 24 * hourMs, -8 * 24 * hourMs, -hourMs, -20_000, 20_000, 5 * 60_000]);
  publisher.setWrongBy(offsetMs);
  publisher.sign();
  return String(offsetMs);
}

function failServer({ server, random }: World): string {
  server.fault = random.pick(serverFaults);
  server.endConnections();
  return server.fault;
}

function jump({ clock, random }: World): string {
  const offsetMs = signedOffset(random.pick(clockErrors), random.once(2));
  clock.setWrongBy(offsetMs);
  return `${offsetMs / hourMs} h`;
}

function failDisk({ random, agent }: World): string {
  const [fault, onceIn] = [random.pick(diskFaults), random.pick([1, 3, 10, 40])];
  agent().disk.fail(fault, onceIn);
  return `${fault} once in ${onceIn}`;
}

function harm(world: World): string {
  const { random, places, harmed, log } = world;
  const { state } = places.paths;
  const harmable = damageCases(state).filter(({ entry }) => entry.path !== '' && entry.path !== 'lock');
  const chosen = random.pick(harmable);
  try {
    doHarm(state, chosen);
  } catch (error) {
    // An earlier event harmed the same entry.
    log.event(`  ${error}`);
  }
  harmed.add(join(state, chosen.entry.path));
  if (chosen.entry.path.startsWith('policy')) world.isPolicyHarmed = true;
  return `${chosen.entry.path} ${chosen.harm}`;
}

function changeWorker({ workers, random }: World): string {
  const worker = random.pick(workers);
  worker.behaviour = random.pick(workerBehaviours);
  if (worker.behaviour === 'absent' || random.once(3)) worker.leave();
  return worker.behaviour;
}

function reloads(world: World): string {
  world.configure(world.random.pick(['1m', '2m', '7s']));
  const times = 1 + world.random.int(100);
  for (let count = 0; count < times; count++) world.agent().reload();
  world.log.count('reloads', times);
  return String(times);
}

async function manyPulls(world: World): Promise<string> {
  const asked = Array.from({ length: 12 }, () =>
    world.ask({ type: 'pull', force: world.random.once(6), by }),
  );
  await Promise.all(asked);
  return '';
}

async function rollback(world: World): Promise<string> {
  const force = world.random.once(3);
  const generation = world.random.once(4) ? { generation: 1 + world.random.int(50) } : {};
  return answerOf(await world.ask({ type: 'rollback', by, reason: 'by chance', force, ...generation }));
}

async function pause(world: World): Promise<string> {
  const until = world.random.once(2) ? { untilMs: world.clock.nowMs() + world.random.int(3 * hourMs) } : {};
  return answerOf(await world.ask({ type: 'pause', by, reason: 'by chance', ...until }));
}

/** Sends every request that only reads: status, history, refusals, metrics. */
async function queryAgent(world: World): Promise<string> {
  await world.ask({ type: 'status' });
  await world.ask({ type: 'history', limit: 50 });
  await world.ask({ type: 'refusals' });
  return `metrics ${await world.drive.until(scrape(world.places.metrics))}`;
}

function scrape(socketPath: string): Promise<number | string> {
  return new Promise((resolve) => {
    const asked = httpRequest({ socketPath, path: '/metrics', agent: false }, (response) => {
      response.resume().once('close', () => resolve(response.statusCode ?? 0));
    });
    asked.once('error', (error) => resolve(String(error))).end();
  });
}

/** Repeats the last line of the history until the next lines rotate the file, as after a busy month. */
function lengthenHistory({ places, log }: World): string {
  const path = places.paths.history;
  const stat = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined || !stat.isFile() || stat.size > 9_000_000 || stat.size === 0) return 'no';
  const content = fs.readFileSync(path, 'utf8');
  const line = `${content.trimEnd().split('\n').at(-1)}\n`;
  fs.appendFileSync(path, line.repeat(Math.floor((9_950_000 - stat.size) / line.length)));
  log.count('histories made long');
  return '';
}

async function restart(world: World): Promise<string> {
  await world.end();
  await world.start();
  return '';
}

/** Kills the agent at a random operation of a pull or of its periodic work, then starts another agent. */
async function kill(world: World): Promise<string> {
  const { random, publisher, drive, log } = world;
  const operations = random.int(150);
  const agent = world.agent();
  agent.disk.killAfter(operations);
  if (random.once(2)) {
    for (const bundle of bundles) publisher.publish(bundle, 'good');
    await Promise.race([world.ask({ type: 'pull', force: random.once(3), by }), drive.until(agent.ended)]);
  }
  for (let passed = 0; passed < 20 && !agent.disk.isDead(); passed++) await drive.pass(30_000);
  if (agent.disk.isDead()) log.count('kills');
  else agent.disk.heal();
  await world.end();
  await world.start();
  return `${operations} operations on`;
}

function answerOf(answer: unknown): string {
  const { type, outcome, code, message, bundles: of } = (answer ?? {}) as Record<string, unknown>;
  return `${type ?? 'no answer'} ${outcome ?? code ?? ''} ${message ?? ''} ${JSON.stringify(of ?? '').slice(0, 300)}`;
}
