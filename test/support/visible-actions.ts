// A host whose every visible action is written down in short words, in the order in which it happens, whoever does it:
// what the server is asked, what commands run, where the link leads, what the worker is told, what status and history
// say, and the exit code. A step can be made to fail, or the process to die in it.
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Host } from '../../src/agent/host.js';
import { createRecorder } from '../../src/agent/record-cycle.js';
import { newCycleId, runSync } from '../../src/agent/run-cycle.js';
import { startHost } from '../../src/agent/start-host.js';
import { writeStatusFile } from '../../src/agent/status-file.js';
import { statusReport } from '../../src/agent/status-report.js';
import type { WorkerGroupConfig } from '../../src/core/config.js';
import type { CycleEventLine } from '../../src/core/cycle-report.js';
import { WritError } from '../../src/core/errors.js';
import { digestFromHex } from '../../src/core/names.js';
import type { OperationObserver } from '../../src/platform/durable-fs.js';
import type { RepositorySource } from '../../src/trust/repository-source.js';
import { type LivingDriver, livingDriver, told } from './living-workers.js';
import { confirms, refuses, unreachable } from './scripted-driver.js';
import { tempDir } from './temp-dir.js';
import { type TestHost, testHost } from './test-host.js';

/** What happens to the first process: where, as `before flush.tree`, `begin canary`, `tell 2` or `hook 2`; and what. */
export interface Trouble {
  readonly at?: string;
  readonly what?: 'killed' | 'ENOSPC' | 'EIO' | 'a bug';
  /** Exit code by command, for generation 2 only: `check`, `canary`, `load` or `probe`; 1 is a no. */
  readonly says?: Readonly<Record<string, number>>;
  /** Those say no to generation 1 too. */
  readonly always?: 'yes';
  /** The worker refuses generation 2; of several, only `b` does. */
  readonly refuses?: 'yes';
  /**
   * Other workers than one that is reset: `rolling`, three of them told one by one; `restarted`, since its configuration
   * is what changes; `mortal`, it dies of generation 2 and is restarted on the way back.
   */
  readonly workers?: 'rolling' | 'restarted' | 'mortal';
  /** What the server does to one file, by a part of its name. */
  readonly server?: { readonly file: string; readonly does: 'is away' | 'cuts off' };
  /** What is wrong with the release itself. */
  readonly release?: 'an older serial' | 'another manifest';
}

/** What happened in the process that met the trouble, in the start after it, and in the cycle after that. */
export interface VisibleActions {
  readonly interrupted: string;
  readonly restart: string;
  readonly next: string;
}

class Killed extends Error {}

interface Story {
  say(text: string): void;
  take(): string;
  /** Says nothing any more, and lets nothing happen. */
  die(): void;
  requireAlive(): void;
  readonly path: string;
}

function openStory(path: string): Story {
  let dead = false;
  fs.writeFileSync(path, '');
  return {
    path,
    say: (text) => {
      if (!dead) fs.appendFileSync(path, `${text}\n`);
    },
    take: () => {
      const text = fs.readFileSync(path, 'utf8').trim().replaceAll('\n', ', ');
      fs.writeFileSync(path, '');
      return text;
    },
    die: () => {
      dead = true;
    },
    requireAlive: () => {
      if (dead) throw new Killed('killed');
    },
  };
}

/** Runs release 5 into generation 1, then meets the trouble with release 6, starts again, and pulls once more. */
export async function visibleActions(trouble: Trouble): Promise<VisibleActions> {
  using dir = tempDir();
  const script = dir.join('says');
  const dead = new Set<string>();
  const story = openStory(dir.join('story'));
  fs.mkdirSync(script);
  using test = testHost(hostOptions({ story, script, dead }, trouble, 'not yet'));
  await publish(test, 5);
  await pull(test.host, story);
  await publish(test, 6, trouble.release);
  for (const [name, code] of Object.entries(trouble.says ?? {})) {
    fs.writeFileSync(join(script, name), `${code} ${trouble.always ?? 'no'}\n`);
  }
  story.take();
  const first = openStory(story.path);
  const host = test.reopen(hostOptions({ story: first, script, dead }, trouble, 'now'));
  await runUntilKilled(host, first, trouble);
  const interrupted = first.take();

  const second = openStory(story.path);
  // What was wrong with the server or the disk is over; what is wrong with the release is not.
  const healed = { refuses: trouble.refuses, workers: trouble.workers } as Trouble;
  const again = test.reopen(hostOptions({ story: second, script, dead }, healed, 'now'));
  await start(again, second);
  const restart = second.take();
  await pull(again, second);
  return { interrupted, restart, next: second.take() };
}

async function publish(test: TestHost, serial: number, wrong?: Trouble['release']): Promise<void> {
  const info = wrong === 'an older serial' ? { serial: serial - 2 } : { serial };
  const digest = digestFromHex('0'.repeat(64));
  if (digest === undefined) throw new Error('this is a digest');
  const manifest = { digest, length: 100 };
  await test.publish(
    'access',
    { 'policy.yaml': `version: ${serial}\n` },
    { ...info, ...(wrong === 'another manifest' ? { manifest } : {}) },
  );
}

async function runUntilKilled(host: Host, story: Story, trouble: Trouble): Promise<void> {
  try {
    await start(host, story);
    await pull(host, story, trouble);
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
  }
}

async function start(host: Host, story: Story): Promise<void> {
  const { recovered } = await startHost(host, { cycle: newCycleId(), signal: new AbortController().signal });
  story.requireAlive();
  if (recovered === undefined) return;
  story.say(`recovered ${recovered.result.outcome}`);
  createRecorder().record(host, recovered, {});
}

async function pull(host: Host, story: Story, trouble: Trouble = {}): Promise<void> {
  const onEvent = (event: CycleEventLine): void => {
    if (event.type === 'step.started') strike(story, trouble, `begin ${event.step}`);
  };
  const signal = new AbortController().signal;
  const end = await runSync(host, { trigger: 'pull', by: 'test', signal, onEvent });
  story.requireAlive();
  createRecorder().record(host, end, { by: 'test' });
  const facts = { version: 'test', state: 'stop', contact: { contact: {} }, problems: [] } as const;
  writeStatusFile(host, statusReport(host, { ...facts, last: end.result }));
  const { problems, exitCode } = end.result;
  story.say(problems[0] === undefined ? `exit ${exitCode}` : `exit ${exitCode} ${problems[0].code}`);
}

/** Lets the trouble happen if this is its place. */
function strike(story: Story, { at, what }: Trouble, place: string): void {
  story.requireAlive();
  if (at !== place) return;
  if (what === 'killed') {
    story.say('killed');
    story.die();
    story.requireAlive();
  }
  throw what === 'a bug' ? new TypeError(what) : Object.assign(new Error(what), { code: what });
}

interface World {
  readonly story: Story;
  readonly script: string;
  /** Who is dead outlives the agent. */
  readonly dead: Set<string>;
}

function hostOptions(
  world: World,
  trouble: Trouble,
  when: 'not yet' | 'now',
): NonNullable<Parameters<typeof testHost>[0]> {
  const { story, script } = world;
  const met = when === 'now' ? trouble : {};
  const hook = (name: string) => ({ run: command(story, script, name), timeoutMs: 10_000 });
  return {
    bundles: [{ name: 'access', checks: [{ kind: 'run', name: 'check', ...hook('check') }] }],
    groups: {
      app: {
        driver: driverOf(world, trouble, met),
        config: {
          ...mannerOf(trouble),
          canary: { kind: 'run', hook: hook('canary') },
          load: hook('load'),
          probe: { ...hook('probe'), retry: 0 },
        },
      },
    },
    observer: observerOf(story, met),
    source: (source) => heard(source, story, met),
  };
}

function mannerOf({ workers }: Trouble): Partial<WorkerGroupConfig> {
  if (workers === 'rolling') return { rolling: 1 };
  if (workers === 'mortal') return { onDead: 'restart' };
  return workers === 'restarted' ? { restartWhen: ['policy.yaml'] } : {};
}

/** Says each verb as it is used: `tell 2`, `restart 2`, and `tell b 2` where there are several. */
function driverOf({ story, dead }: World, trouble: Trouble, met: Trouble): LivingDriver {
  const isSet = trouble.workers === 'rolling';
  const answer = (worker: string) => (generation: number) => {
    const isNo = generation > 1 && trouble.refuses === 'yes' && (!isSet || worker === 'b');
    return isNo ? refuses('no')() : confirms(generation);
  };
  const names = isSet ? ['a', 'b', 'c'] : ['a'];
  const driver = livingDriver(Object.fromEntries(names.map((name) => [name, answer(name)])));
  const said = (verb: string, worker: string, generation: number): void => {
    story.requireAlive();
    const text = `${verb} ${isSet ? `${worker} ` : ''}${generation}`;
    story.say(text);
    strike(story, met, text);
  };
  return {
    ...driver,
    liveness: async (worker) => (dead.has(worker) ? 'dead' : 'alive'),
    reset: async (worker, options) => {
      const { generation } = options.target;
      said('tell', worker, generation);
      if (trouble.workers === 'mortal' && generation > 1) dead.add(worker);
      if (dead.has(worker)) return unreachable();
      return driver.reset(worker, options);
    },
    restart: async (worker, { target }) => {
      said('restart', worker, target.generation);
      dead.delete(worker);
      return told();
    },
  };
}

/** Writes down that it ran, and for which generation; `says/NAME` has its exit code, and whether it is for all. */
function command(story: Story, script: string, name: string): [string, ...string[]] {
  const generation = name === 'check' || name === 'canary' ? 'new' : '$' + '{WRIT_GENERATION_DIR##*/}';
  const verdict = `read code always < ${join(script, name)} 2>/dev/null || exit 0`;
  const spared = `[ "$always" = yes ] || [ ${generation} != 1 ] || exit 0`;
  return ['sh', '-c', `echo "${name} ${generation}" >> ${story.path}; ${verdict}; ${spared}; exit $code`];
}

function observerOf(story: Story, trouble: Trouble): OperationObserver {
  const counts = new Map<string, number>();
  let op = '';
  return {
    before: (operation) => {
      story.requireAlive();
      const count = (counts.get(operation.op) ?? 0) + 1;
      counts.set(operation.op, count);
      op = count === 1 ? operation.op : `${operation.op} ${count}`;
      strike(story, trouble, `before ${op}`);
    },
    after: ({ op: label, path }) => {
      story.requireAlive();
      sayOf(story, label, path);
      strike(story, trouble, `after ${op}`);
    },
  };
}

function sayOf(story: Story, label: string, path: string): void {
  if (label === 'swap.link:rename') story.say(`link ${fs.readlinkSync(path).slice('generations/'.length)}`);
  if (label === 'swap.unlink') story.say('link none');
  if (label === 'status:rename')
    story.say(`status ${JSON.parse(fs.readFileSync(path, 'utf8')).last.outcome}`);
  if (label !== 'history.append') return;
  const { result } = JSON.parse(fs.readFileSync(path, 'utf8').trim().split('\n').at(-1) ?? '');
  story.say(`history ${result.trigger} ${result.outcome}`);
}

function heard(source: RepositorySource, story: Story, { server }: Trouble): RepositorySource {
  const away = (path: string, does: string): boolean => server?.does === does && path.includes(server.file);
  return {
    ...source,
    fetch: async (path, options) => {
      story.requireAlive();
      story.say(`ask ${path.replace(/^metadata\/(\d+\.)?/, '').replace('.json', '')}`);
      if (away(path, 'is away')) throw new WritError('SERVER_UNREACHABLE', 'the server is away');
      return source.fetch(path, options);
    },
    stream: (path, options) => {
      story.requireAlive();
      story.say('download');
      const chunks = source.stream(path, options);
      return away(path, 'cuts off') ? cutOff(chunks) : chunks;
    },
  };
}

async function* cutOff(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    yield chunk.subarray(0, 10);
    throw new WritError('SERVER_UNREACHABLE', 'the connection was cut off');
  }
}
