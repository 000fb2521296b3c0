// The cases: what happens to a daemon and to its policy, and when both sides are asked. Owns the order of events; what a
// daemon is, and how Writ's word is judged, is others'.
import type { Daemon, Instance, Stage, Tree } from '../parts/daemon.js';
import { wordOf } from '../rules/judge.js';
import type { Repeat } from '../rules/recipe.js';
import type { Answers, AskOptions, Judge, TruthHost } from '../stage/host.js';

export interface Look {
  readonly what: string;
  readonly release: 'good' | 'bad';
  readonly answers: Answers;
  readonly served: string | undefined;
}

/** One daemon and one host, before anything was published. */
export interface Scene {
  readonly daemon: Daemon;
  readonly stage: Stage;
  readonly instance: Instance;
  readonly host: TruthHost;
  readonly repeat: Repeat;
  /** Resolves after so many milliseconds of the real daemon's time. */
  readonly pause: (ms: number) => Promise<void>;
}

export interface Case {
  readonly name: string;
  /** One line for the reader of the page. */
  readonly what: string;
  /** What of the page is left out. */
  readonly without: readonly Judge[];
  /** Why this case cannot be played with this daemon. */
  readonly never?: (daemon: Daemon, agent: string) => string | undefined;
  readonly play: (scene: Scene) => Promise<readonly Look[]>;
}

type Kind = 'good' | 'bad' | 'half';

function tree({ daemon, stage }: Scene, kind: Kind, version: string): Tree {
  const make = daemon[kind];
  if (typeof make !== 'function') throw new Error(make.never);
  return make(version, stage);
}

async function publish(scene: Scene, version: string, kind: Kind = 'good'): Promise<void> {
  await scene.host.publish(version, tree(scene, kind, version), scene.daemon.stamps);
}

interface LookOptions extends AskOptions {
  readonly release?: Look['release'];
  readonly command?: 'pull' | 'rollback';
}

async function look(
  { host, instance }: Scene,
  what: string,
  { release = 'good', command = 'pull', ...options }: LookOptions = {},
): Promise<Look> {
  const answers = await host.ask(command, options);
  return { what, release, answers, served: await instance.ask() };
}

interface Patience {
  /** So long its word may be better than the truth. */
  readonly inTimeMs: number;
  /** How much later it is found is said all the same. */
  readonly maxMs: number;
}

/** Of what an agent sees by itself, without a probe. */
const usual: Patience = { inTimeMs: 60_000, maxMs: 100_000 };
const lookEveryMs = 1000;

/**
 * Asks a host whose agent runs until it says that all is confirmed, or that something is wrong, and then the daemon.
 * @returns what it said when the time was over, or before
 */
async function heard(
  { host, instance, pause }: Scene,
  what: string,
  word: 'confirmed' | 'trouble',
  { inTimeMs, maxMs }: Patience = usual,
): Promise<Look> {
  const begunMs = Date.now();
  const tookMs = (): number => Date.now() - begunMs;
  let inTime = await host.hear();
  let now = inTime;
  while (wordOf(now) !== word && tookMs() < maxMs) {
    await pause(lookEveryMs);
    now = await host.hear();
    if (tookMs() <= inTimeMs) inTime = now;
  }
  const afterMs = tookMs();
  const late = wordOf(now) === word ? `said after ${Math.round(afterMs / 1000)} s` : 'never said';
  const found = afterMs <= inTimeMs ? 'said in time' : late;
  return { what: `${what} (${found})`, release: 'good', answers: inTime, served: await instance.ask() };
}

/** A daemon that serves v1, and is known to. */
async function settle(scene: Scene): Promise<void> {
  await publish(scene, 'v1');
  const { daemon, instance, host } = scene;
  if (daemon.starts === 'after-policy') {
    const before = await host.ask('pull');
    if (before.active !== 'v1') throw new Error(`the first release is not active: ${JSON.stringify(before)}`);
  }
  await instance.start();
  const answers = await host.ask('pull');
  const served = await instance.ask();
  if (served !== 'v1')
    throw new Error(`the first release is not served but ${served}: ${JSON.stringify(answers)}`);
}

async function refused(scene: Scene, kind: 'bad' | 'half'): Promise<readonly Look[]> {
  await settle(scene);
  await publish(scene, 'v2', kind);
  const first = await look(scene, 'after the pull', { release: 'bad' });
  return [first, await look(scene, 'next pull', { release: 'bad' })];
}

const noProcess = ({ process }: Daemon): string | undefined =>
  process === 'none' ? 'it is a program that ends, not a process that stays' : undefined;

/** Longer than an answer takes, shorter than any `timeout` of the pages. */
const slowMs = 2500;

export const cases: readonly Case[] = [
  {
    name: 'good',
    what: 'v1 is served, v2 is published',
    without: [],
    play: async (scene) => {
      await settle(scene);
      await publish(scene, 'v2');
      return [await look(scene, 'after the pull')];
    },
  },
  {
    name: 'check',
    what: 'v2 is broken, and there is a check',
    without: [],
    never: (_daemon, agent) => (agent.includes('checks:') ? undefined : 'its page has no check'),
    play: (scene) => refused(scene, 'bad'),
  },
  {
    name: 'refused',
    what: 'v2 is broken, and nothing checks it before the daemon',
    without: ['checks'],
    play: (scene) => refused(scene, 'bad'),
  },
  {
    name: 'bare',
    what: 'v2 is broken, and there is neither check nor probe: the daemon is believed',
    without: ['checks', 'probe'],
    never: (_daemon, agent) => (agent.includes('probe:') ? undefined : 'its page has no probe: as `refused`'),
    play: (scene) => refused(scene, 'bad'),
  },
  {
    name: 'half',
    what: 'a part of v2 is broken, and nothing checks it',
    without: ['checks'],
    never: ({ half }) => (typeof half === 'function' ? undefined : half.never),
    play: (scene) => refused(scene, 'half'),
  },
  {
    name: 'dead before',
    what: 'killed, then v2 is published',
    without: [],
    never: noProcess,
    play: async (scene) => {
      await settle(scene);
      await scene.instance.kill();
      await publish(scene, 'v2');
      return [await look(scene, 'while it is dead')];
    },
  },
  {
    name: 'dead of it',
    what: 'v2 is active, and the daemon dies behind the pull; nothing is published',
    without: [],
    never: noProcess,
    play: async (scene) => {
      await settle(scene);
      await publish(scene, 'v2');
      await scene.host.ask('pull');
      await scene.instance.kill();
      return [await look(scene, 'next pull')];
    },
  },
  {
    name: 'slow',
    what: 'it hears nothing for the first 2.5 s in which Writ notifies it of v2',
    without: [],
    never: noProcess,
    play: async (scene) => {
      const { instance, pause } = scene;
      await settle(scene);
      await publish(scene, 'v2');
      instance.stopAndGo('SIGSTOP');
      const onReset = (): void => void pause(slowMs).then(() => instance.stopAndGo('SIGCONT'));
      return [await look(scene, 'after the pull', { onReset })];
    },
  },
  {
    name: 'hung',
    what: 'stopped (SIGSTOP) while v2 is pulled; goes on later',
    without: [],
    never: noProcess,
    play: async (scene) => {
      const { instance } = scene;
      await settle(scene);
      await publish(scene, 'v2');
      instance.stopAndGo('SIGSTOP');
      const stopped = await look(scene, 'while it is stopped');
      instance.stopAndGo('SIGCONT');
      return [stopped, await look(scene, 'next pull after it goes on')];
    },
  },
  {
    name: 'absent',
    what: 'v1 is the first release, and the daemon is not there yet; it comes later',
    without: [],
    never: noProcess,
    play: async (scene) => {
      await publish(scene, 'v1');
      const absent = await look(scene, 'before it is there');
      await scene.instance.start();
      return [absent, await look(scene, 'next pull after it came')];
    },
  },
  {
    name: 'back later',
    what: 'dead while v2 is pulled, then started again',
    without: [],
    never: noProcess,
    play: async (scene) => {
      await settle(scene);
      await scene.instance.kill();
      await publish(scene, 'v2');
      await scene.host.ask('pull');
      await scene.instance.start();
      return [await look(scene, 'next pull after it came back')];
    },
  },
  {
    name: 'restarted',
    what: 'killed and started again between two looks; nothing is published',
    without: [],
    never: noProcess,
    play: async (scene) => {
      await settle(scene);
      await scene.instance.kill();
      await scene.instance.start();
      return [await look(scene, 'next pull')];
    },
  },
  {
    name: 'rolled back',
    what: 'v1, v2, v3, then `writ rollback` twice',
    without: [],
    play: async (scene) => {
      await settle(scene);
      for (const version of ['v2', 'v3']) {
        await publish(scene, version);
        await scene.host.ask('pull');
      }
      const first = await look(scene, 'after the first', { command: 'rollback' });
      return [first, await look(scene, 'after the second', { command: 'rollback' })];
    },
  },
  {
    name: 'killed',
    what: 'an agent runs; killed, later started again, nothing is published; asked until Writ says so, 60 s at most',
    without: [],
    never: noProcess,
    play: async (scene) => {
      await settle(scene);
      await using _agent = await scene.host.agent();
      await heard(scene, 'running', 'confirmed');
      await scene.instance.kill();
      const dead = await heard(scene, 'while it is dead', 'trouble');
      await scene.instance.start();
      return [dead, await heard(scene, 'after it came back', 'confirmed')];
    },
  },
  {
    name: 'emptied',
    what: 'an agent runs; somebody removes what the daemon uses, nothing is published; asked until Writ says so, `probe.every` and 30 s at most, and until a notification has restored it',
    without: [],
    never: ({ empty }) => (typeof empty === 'function' ? undefined : empty.never),
    play: async (scene) => {
      const { daemon, instance, repeat } = scene;
      await settle(scene);
      await using _agent = await scene.host.agent();
      await heard(scene, 'running', 'confirmed');
      if (typeof daemon.empty === 'function') await daemon.empty(instance);
      const inTimeMs = repeat.everyMs + 30_000;
      const seen = await heard(scene, 'emptied', 'trouble', { inTimeMs, maxMs: inTimeMs + 30_000 });
      if (repeat.restores === 'no' || wordOf(seen.answers) !== 'trouble') return [seen];
      // Three wrong answers, the notification, and one that is right.
      const maxMs = 4 * repeat.everyMs + 60_000;
      return [seen, await heard(scene, 'notified again', 'confirmed', { inTimeMs: maxMs, maxMs })];
    },
  },
];

/** Those that every run of CI plays with every daemon. */
export const always: readonly string[] = ['good', 'refused', 'dead before', 'absent'];

/** Those that wait for the agent, a minute and more. */
export const slow: readonly string[] = ['killed', 'emptied'];
