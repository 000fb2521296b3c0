// Cases with a running agent and without a publish: an event changes the daemon, and the agent must find it in time.
import { reportedStateOf } from '../rules/judge.js';
import type { Case, Observation, Scene } from './case.js';
import { noProcess, servedBy, settle } from './scene.js';

interface Patience {
  /** For this time the reported state may be better than the real one. */
  readonly inTimeMs: number;
  /** The time in which a late report is still recorded with its delay. */
  readonly maxMs: number;
}

/** For events that an agent finds without a probe. */
const usual: Patience = { inTimeMs: 60_000, maxMs: 100_000 };
const queryEveryMs = 1000;

/**
 * Queries a host with a running agent until it reports the expected state, then queries the daemon.
 * @returns the report at the end of the time, or before
 */
async function queryUntil(
  { host, instance, pause }: Scene,
  what: string,
  expected: 'confirmed' | 'trouble',
  { inTimeMs, maxMs }: Patience = usual,
): Promise<Observation> {
  const begunMs = Date.now();
  const tookMs = (): number => Date.now() - begunMs;
  let inTime = await host.query();
  let now = inTime;
  while (reportedStateOf(now) !== expected && tookMs() < maxMs) {
    await pause(queryEveryMs);
    now = await host.query();
    if (tookMs() <= inTimeMs) inTime = now;
  }
  const afterMs = tookMs();
  const late =
    reportedStateOf(now) === expected ? `said after ${Math.round(afterMs / 1000)} s` : 'never said';
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
      await queryUntil(scene, 'running', 'confirmed');
      await scene.instance.kill();
      const dead = await queryUntil(scene, 'while it is dead', 'trouble');
      await scene.instance.start();
      return [dead, await queryUntil(scene, 'after it came back', 'confirmed')];
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
      await queryUntil(scene, 'running', 'confirmed');
      if (typeof daemon.empty === 'function') await daemon.empty(instance);
      const inTimeMs = repeat.everyMs + 30_000;
      const seen = await queryUntil(scene, 'emptied', 'trouble', { inTimeMs, maxMs: inTimeMs + 30_000 });
      if (!repeat.canRestore || reportedStateOf(seen.answers) !== 'trouble') return [seen];
      // Three failed probes, the notification, and one successful probe.
      const maxMs = 4 * repeat.everyMs + 60_000;
      return [seen, await queryUntil(scene, 'notified again', 'confirmed', { inTimeMs: maxMs, maxMs })];
    },
  },
];
