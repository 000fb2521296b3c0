// An agent runs, nothing is published, and something happens to the daemon: what Writ finds by itself, and when.
import { wordOf } from '../rules/judge.js';
import type { Case, Look, Scene } from './case.js';
import { noProcess, servedBy, settle } from './scene.js';

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
  return {
    what: `${what} (${found})`,
    release: 'good',
    answers: inTime,
    served: await servedBy(instance, inTime),
  };
}

export const agentCases: readonly Case[] = [
  {
    name: 'killed',
    what: 'an agent runs; killed, later started again, nothing is published; asked until Writ reports it, 60 s at most',
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
    what: 'an agent runs; somebody removes what the daemon uses, nothing is published; asked until Writ reports it, `probe.every` and 30 s at most, and until a notification has restored it',
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
