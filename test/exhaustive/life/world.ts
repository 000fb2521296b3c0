// A simulated host with its environment: publisher, server, workers, clock, disk and the running agent. Owns their composition
// and the requests to the agent; host-events.ts changes them.
import { mkdirSync, writeFileSync } from 'node:fs';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import { isWritError } from '../../../src/core/errors.js';
import type { ControlAnswer, ControlRequest } from '../../../src/core/protocol/control-protocol.js';
import type { Seeded } from '../../kit/assert/seeded.js';
import type { TempDir } from '../../kit/disk/temp-dir.js';
import { type EventLog, eventLog } from './event-log.js';
import { type FaultyServer, faultyServer } from './faulty-server.js';
import {
  type AgentPaths,
  agentPaths,
  configure,
  type SimulatedAgent,
  startSimulatedAgent,
} from './simulated-agent.js';
import { type SimulatedPublisher, simulatedPublisher } from './simulated-publisher.js';
import { type SimulatedWorker, simulatedWorker } from './simulated-worker.js';
import { type TimeDriver, timeDriver } from './time-driver.js';
import { type VirtualClock, virtualClock } from './virtual-clock.js';

export interface World {
  readonly dir: TempDir;
  readonly random: Seeded;
  readonly clock: VirtualClock;
  readonly drive: TimeDriver;
  readonly log: EventLog;
  readonly publisher: SimulatedPublisher;
  readonly server: FaultyServer;
  readonly workers: readonly SimulatedWorker[];
  readonly places: AgentPaths;
  /** Results of jobs since the last check. */
  readonly agentEnds: CycleEnd[];
  /** Paths of the entries that events harmed. */
  readonly harmed: Set<string>;
  /** True from a harm of the policy to the next recovery: a reader may find anything. */
  isPolicyHarmed: boolean;
  readonly agent: () => SimulatedAgent;
  /** @returns the error that failed the start; undefined when the agent runs */
  start(): Promise<unknown>;
  /** Ends the agent by its stop signal, or waits for its end after a kill. */
  end(): Promise<void>;
  configure(pollEvery?: string): void;
  /** @returns the last response; undefined without one, which is checked here */
  ask(request: ControlRequest): Promise<ControlAnswer | undefined>;
}

export interface WorldOptions {
  readonly dir: TempDir;
  readonly random: Seeded;
  readonly bombBytes: number;
  /** Called after each job: a planted leak. */
  readonly onEnd?: (end: CycleEnd) => void;
}

const startMs = Date.UTC(2026, 10, 1);

export async function createWorld({
  dir,
  random,
  bombBytes,
  onEnd = () => undefined,
}: WorldOptions): Promise<World> {
  const clock = virtualClock(startMs);
  const log = eventLog(() => (clock.trueMs() - startMs) / 3_600_000);
  const publisher = simulatedPublisher({ nowMs: clock.trueMs, random, bombBytes });
  const server = await faultyServer({ files: publisher.repository.files, random, nowMs: clock.trueMs });
  const places = agentPaths(dir);
  const root = dir.join('root.json');
  mkdirSync(places.paths.run);
  writeFileSync(root, publisher.repository.bootstrapRoot);
  const agentEnds: CycleEnd[] = [];
  let agent: SimulatedAgent | undefined;
  const drive = timeDriver(clock, { jobs: () => agent?.jobs() ?? 0, answers: server.answers });
  const workers = ['one', 'two'].map((name) => simulatedWorker(`${places.paths.run}/workers/app.sock`, name));
  const runningAgent = (): SimulatedAgent => {
    if (agent === undefined) throw new Error('no agent was started');
    return agent;
  };
  const world: World = {
    ...{ dir, random, clock, drive, log, publisher, server, workers, places, agentEnds },
    ...{ harmed: new Set<string>(), isPolicyHarmed: false, agent: runningAgent },
    configure: (pollEvery) =>
      configure(places, { url: server.url, root, ...(pollEvery === undefined ? {} : { pollEvery }) }),
    start: async () => {
      agent = startSimulatedAgent({
        ...{ places, clock, random },
        onLog: (line) => judgeText(log, 'the log', line),
        onEnd: (end) => {
          noteEnd(world, end);
          onEnd(end);
        },
      });
      log.count('starts');
      return waitForStart(world, agent);
    },
    end: async () => {
      const ending = runningAgent();
      ending.stop.abort();
      judgeError(world, await drive.until(ending.ended), { isDead: ending.disk.isDead() });
    },
    ask: (request) => ask(world, request),
  };
  world.configure();
  return world;
}

/** @returns the error that failed the start; undefined when the agent runs */
async function waitForStart(world: World, agent: SimulatedAgent): Promise<unknown> {
  const startedMs = performance.now();
  while (agent.state() === 'starting') {
    await world.drive.pass(100);
    if (performance.now() - startedMs < 30_000) continue;
    world.log.violate('the agent neither starts nor ends');
    return new Error('hangs');
  }
  if (agent.state() === 'runs') return undefined;
  const error = await agent.ended;
  judgeError(world, error, { isDead: agent.disk.isDead() });
  return error;
}

function noteEnd({ agentEnds, log }: World, end: CycleEnd): void {
  agentEnds.push(end);
  const { trigger, outcome } = end.result;
  log.count(trigger === 'poll' || trigger === 'pull' ? `${trigger}s` : `jobs: ${trigger}`);
  log.count(`outcome: ${outcome}`);
  const codes = end.result.bundles.flatMap(({ problem }) => problem?.code ?? []);
  for (const code of new Set([...codes, ...end.result.problems.map((one) => one.code)]))
    log.count(`code: ${code}`);
  judgeText(log, 'a result', JSON.stringify(end));
}

/** Records a violation when a text of Writ has an internal error. */
export function judgeText(log: EventLog, where: string, text: string): void {
  if (/"(INTERNAL|TypeError|RangeError|ReferenceError|SyntaxError|AssertionError)"/.test(text))
    log.violate(`${where}: ${text}`);
}

/** Records a violation when a request failed, or an agent ended, with an error that is no WritError. */
function judgeError(
  { log }: Pick<World, 'log'>,
  error: unknown,
  { isDead }: { readonly isDead: boolean },
): void {
  if (error === undefined || isDead) return;
  const text =
    error instanceof Error
      ? `${error.stack} ${JSON.stringify((error as { facts?: unknown }).facts)}`
      : String(error);
  if (!isWritError(error) || error.code === 'INTERNAL') log.violate(`an error: ${text}`);
  else log.event(`  ${error.code}: ${error.message}`);
}

async function ask(world: World, request: ControlRequest): Promise<ControlAnswer | undefined> {
  const { log, drive } = world;
  const agent = world.agent();
  if (agent.state() !== 'runs') return undefined;
  log.count('requests');
  log.count(`asked: ${request.type}`);
  const asked = agent.ask(request).then(
    (answers) => ({ answers }),
    (error: unknown) => ({ error }),
  );
  try {
    const answered = await drive.until(asked);
    if ('error' in answered) {
      judgeError(world, answered.error, { isDead: agent.disk.isDead() });
      if (!agent.disk.isDead() && codeOf(answered.error) === 'AGENT_UNREACHABLE')
        log.violate(`${request.type} was not answered`);
      return undefined;
    }
    if (!agent.disk.isDead()) judgeText(log, request.type, JSON.stringify(answered.answers));
    return answered.answers.at(-1);
  } catch (error) {
    log.violate(`${request.type} was not answered: ${error}`);
    return undefined;
  }
}

export function codeOf(error: unknown): string | undefined {
  return isWritError(error) ? error.code : undefined;
}
