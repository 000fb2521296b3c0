// Releases while the daemon runs: a good one, a broken one with and without a check, and a rollback.
import type { Case, Observation, Scene } from './case.js';
import { observe, publish, settle } from './scene.js';

async function refused(scene: Scene, kind: 'bad' | 'half'): Promise<readonly Observation[]> {
  await settle(scene);
  await publish(scene, 'v2', kind);
  const first = await observe(scene, 'after the pull', { release: 'bad' });
  return [first, await observe(scene, 'next pull', { release: 'bad' })];
}

export const releaseCases: readonly Case[] = [
  {
    name: 'good',
    what: 'v1 is served, v2 is published',
    without: [],
    play: async (scene) => {
      await settle(scene);
      await publish(scene, 'v2');
      return [await observe(scene, 'after the pull')];
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
    what: 'v2 is broken, and there is neither check nor probe: the verdict of the daemon decides',
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
];

export const rollbackCases: readonly Case[] = [
  {
    name: 'reverted',
    what: 'v2 is broken and refused, then the tree of v1 is published again: only its stamp is another one',
    without: [],
    play: async (scene) => {
      await settle(scene);
      await publish(scene, 'v2', 'bad');
      await scene.host.ask('pull');
      await publish(scene, 'v1');
      return [await observe(scene, 'after the pull'), await observe(scene, 'next pull')];
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
      const first = await observe(scene, 'after the first', { command: 'rollback' });
      return [first, await observe(scene, 'after the second', { command: 'rollback' })];
    },
  },
];
