// A host with all that is around it: publisher, server, workers, clock, disk, and the agent that lives there just now. Owns
// how they are put together and how somebody is asked; what happens to them is life-events'.
import { mkdirSync, writeFileSync } from 'node:fs';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import { isWritError } from '../../../src/core/errors.js';
import type { ControlAnswer, ControlRequest } from '../../../src/core/protocol/control-protocol.js';
import type { Seeded } from '../../kit/assert/seeded.js';
import type { TempDir } from '../../kit/disk/temp-dir.js';
import { type AgentPlaces, agentPlaces, configure, type LifeAgent, startLifeAgent } from './life-agent.js';
import { type LifeClock, lifeClock } from './life-clock.js';
import { type Drive, lifeDrive } from './life-drive.js';
import { type LifePublisher, lifePublisher } from './life-publisher.js';
import { type LifeServer, lifeServer } from './life-server.js';
import { type LifeStory, lifeStory } from './life-story.js';
import { type LifeWorker, lifeWorker } from './life-worker.js';

export interface World {
  readonly dir: TempDir;
  readonly random: Seeded;
  readonly clock: LifeClock;
  readonly drive: Drive;
  readonly story: LifeStory;
  readonly publisher: LifePublisher;
  readonly server: LifeServer;
  readonly workers: readonly LifeWorker[];
  readonly places: AgentPlaces;
  /** Ends of jobs since somebody took them. */
  readonly ends: CycleEnd[];
  /** What was harmed by hand, by its path. */
  readonly harmed: Set<string>;
  /** Since a harm of the policy and until the next calm a reader may find anything. */
  isPolicyHarmed: boolean;
  readonly agent: () => LifeAgent;
  /** @returns what kept it from starting, undefined when it runs */
  start(): Promise<unknown>;
  /** Ends it in good order, or after a kill. */
  end(): Promise<void>;
  configure(pollEvery?: string): void;
  /** @returns its last answer; undefined where there was none, which is judged here */
  ask(request: ControlRequest): Promise<ControlAnswer | undefined>;
}

export interface WorldOptions {
  readonly dir: TempDir;
  readonly random: Seeded;
  readonly bombBytes: number;
  /** Called at the end of each job: a planted leak. */
  readonly onEnd?: (end: CycleEnd) => void;
}

const startMs = Date.UTC(2026, 10, 1);

export async function lifeWorld({
  dir,
  random,
  bombBytes,
  onEnd = () => undefined,
}: WorldOptions): Promise<World> {
  const clock = lifeClock(startMs);
  const story = lifeStory(() => (clock.trueMs() - startMs) / 3_600_000);
  const publisher = lifePublisher({ nowMs: clock.trueMs, random, bombBytes });
  const server = await lifeServer({ files: publisher.repository.files, random, nowMs: clock.trueMs });
  const places = agentPlaces(dir);
  const root = dir.join('root.json');
  mkdirSync(places.paths.run);
  writeFileSync(root, publisher.repository.bootstrapRoot);
  const ends: CycleEnd[] = [];
  let agent: LifeAgent | undefined;
  const drive = lifeDrive(clock, { jobs: () => agent?.jobs() ?? 0, answers: server.answers });
  const workers = ['one', 'two'].map((name) => lifeWorker(`${places.paths.run}/workers/app.sock`, name));
  const lives = (): LifeAgent => {
    if (agent === undefined) throw new Error('no agent was started');
    return agent;
  };
  const world: World = {
    ...{ dir, random, clock, drive, story, publisher, server, workers, places, ends },
    ...{ harmed: new Set<string>(), isPolicyHarmed: false, agent: lives },
    configure: (pollEvery) =>
      configure(places, { url: server.url, root, ...(pollEvery === undefined ? {} : { pollEvery }) }),
    start: async () => {
      agent = startLifeAgent({
        ...{ places, clock, random },
        onLog: (line) => judgeText(story, 'the log', line),
        onEnd: (end) => {
          noteEnd(world, end);
          onEnd(end);
        },
      });
      story.count('starts');
      return started(world, agent);
    },
    end: async () => {
      const ending = lives();
      ending.stop.abort();
      judgeError(world, await drive.until(ending.ended), { isDead: ending.disk.isDead() });
    },
    ask: (request) => ask(world, request),
  };
  world.configure();
  return world;
}

/** @returns what kept it from starting */
async function started(world: World, agent: LifeAgent): Promise<unknown> {
  const startedMs = performance.now();
  while (agent.state() === 'starting') {
    await world.drive.pass(100);
    if (performance.now() - startedMs < 30_000) continue;
    world.story.violate('the agent neither starts nor ends');
    return new Error('hangs');
  }
  if (agent.state() === 'runs') return undefined;
  const error = await agent.ended;
  judgeError(world, error, { isDead: agent.disk.isDead() });
  return error;
}

function noteEnd({ ends, story }: World, end: CycleEnd): void {
  ends.push(end);
  const { trigger, outcome } = end.result;
  story.count(trigger === 'poll' || trigger === 'pull' ? `${trigger}s` : `jobs: ${trigger}`);
  story.count(`outcome: ${outcome}`);
  const codes = end.result.bundles.flatMap(({ problem }) => problem?.code ?? []);
  for (const code of new Set([...codes, ...end.result.problems.map((one) => one.code)]))
    story.count(`code: ${code}`);
  judgeText(story, 'a result', JSON.stringify(end));
}

/** Nothing that Writ says may be an error of its own. */
export function judgeText(story: LifeStory, where: string, text: string): void {
  if (/"(INTERNAL|TypeError|RangeError|ReferenceError|SyntaxError|AssertionError)"/.test(text))
    story.violate(`${where}: ${text}`);
}

/** Of a request, or what ended an agent. */
function judgeError(
  { story }: Pick<World, 'story'>,
  error: unknown,
  { isDead }: { readonly isDead: boolean },
): void {
  if (error === undefined || isDead) return;
  const text =
    error instanceof Error
      ? `${error.stack} ${JSON.stringify((error as { facts?: unknown }).facts)}`
      : String(error);
  if (!isWritError(error) || error.code === 'INTERNAL') story.violate(`an error: ${text}`);
  else story.event(`  ${error.code}: ${error.message}`);
}

async function ask(world: World, request: ControlRequest): Promise<ControlAnswer | undefined> {
  const { story, drive } = world;
  const agent = world.agent();
  if (agent.state() !== 'runs') return undefined;
  story.count('requests');
  story.count(`asked: ${request.type}`);
  const asked = agent.ask(request).then(
    (answers) => ({ answers }),
    (error: unknown) => ({ error }),
  );
  try {
    const answered = await drive.until(asked);
    if ('error' in answered) {
      judgeError(world, answered.error, { isDead: agent.disk.isDead() });
      if (!agent.disk.isDead() && codeOf(answered.error) === 'AGENT_UNREACHABLE')
        story.violate(`${request.type} was not answered`);
      return undefined;
    }
    if (!agent.disk.isDead()) judgeText(story, request.type, JSON.stringify(answered.answers));
    return answered.answers.at(-1);
  } catch (error) {
    story.violate(`${request.type} was not answered: ${error}`);
    return undefined;
  }
}

export function codeOf(error: unknown): string | undefined {
  return isWritError(error) ? error.code : undefined;
}
