// The daemon is dead, stopped, slow or not started yet at a release, or between two observations.
import type { Case } from './case.js';
import { noProcess, observe, publish, settle } from './scene.js';

/** Longer than a response takes, shorter than any `timeout` of the pages. */
const slowMs = 2500;

export const outageCases: readonly Case[] = [
  {
    name: 'dead before',
    what: 'killed, then v2 is published',
    without: [],
    never: noProcess,
    play: async (scene) => {
      await settle(scene);
      await scene.instance.kill();
      await publish(scene, 'v2');
      return [await observe(scene, 'while it is dead')];
    },
  },
  {
    name: 'dead of it',
    what: 'v2 is active, and the daemon dies after the pull; nothing is published',
    without: [],
    never: noProcess,
    play: async (scene) => {
      await settle(scene);
      await publish(scene, 'v2');
      await scene.host.ask('pull');
      await scene.instance.kill();
      return [await observe(scene, 'next pull')];
    },
  },
  {
    name: 'slow',
    what: 'it is stopped for the first 2.5 s in which Writ notifies it of v2',
    without: [],
    never: noProcess,
    play: async (scene) => {
      const { instance, pause } = scene;
      await settle(scene);
      await publish(scene, 'v2');
      instance.stopAndGo('SIGSTOP');
      const onReset = (): void => void pause(slowMs).then(() => instance.stopAndGo('SIGCONT'));
      return [await observe(scene, 'after the pull', { onReset })];
    },
  },
  {
    name: 'hung',
    what: 'stopped (SIGSTOP) while v2 is pulled; continued later',
    without: [],
    never: noProcess,
    play: async (scene) => {
      const { instance } = scene;
      await settle(scene);
      await publish(scene, 'v2');
      instance.stopAndGo('SIGSTOP');
      const stopped = await observe(scene, 'while it is stopped');
      instance.stopAndGo('SIGCONT');
      return [stopped, await observe(scene, 'next pull after it goes on')];
    },
  },
  {
    name: 'absent',
    what: 'v1 is the first release, and the daemon does not run yet; it is started later',
    without: [],
    never: noProcess,
    play: async (scene) => {
      await publish(scene, 'v1');
      const absent = await observe(scene, 'before it is there');
      await scene.instance.start();
      return [absent, await observe(scene, 'next pull after it came')];
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
      return [await observe(scene, 'next pull after it came back')];
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
      return [await observe(scene, 'next pull')];
    },
  },
];
