// What every case is made of: a release is published, a daemon settled on the first one, and both sides are asked. Owns
// no order of events.
import type { Daemon, Instance, Tree } from '../parts/daemon.js';
import type { Answers, AskOptions } from '../stage/host.js';
import type { Look, Scene } from './case.js';

type Kind = 'good' | 'bad' | 'half';

function tree({ daemon, stage }: Scene, kind: Kind, version: string): Tree {
  const make = daemon[kind];
  if (typeof make !== 'function') throw new Error(make.never);
  return make(version, stage);
}

export async function publish(scene: Scene, version: string, kind: Kind = 'good'): Promise<void> {
  await scene.host.publish(version, tree(scene, kind, version), scene.daemon.stamps);
}

interface LookOptions extends AskOptions {
  readonly release?: Look['release'];
  readonly command?: 'pull' | 'rollback';
}

export async function look(
  { host, instance }: Scene,
  what: string,
  { release = 'good', command = 'pull', ...options }: LookOptions = {},
): Promise<Look> {
  const answers = await host.ask(command, options);
  return { what, release, answers, served: await servedBy(instance, answers) };
}

/** A daemon on a busy machine may be too slow for whoever asks it: where Writ believes it, it is asked more than once. */
const maxAsked = 4;

export async function servedBy(instance: Instance, answers: Answers): Promise<string | undefined> {
  let served = await instance.ask();
  for (let asked = 1; asked < maxAsked && answers.confirmed && served !== answers.active; asked += 1)
    served = await instance.ask();
  return served;
}

/** A daemon that serves v1, and is known to. */
export async function settle(scene: Scene): Promise<void> {
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

/** Why a case of a daemon that stays cannot be played with a program that ends. */
export const noProcess = ({ process }: Daemon): string | undefined =>
  process === 'none' ? 'it is a program that ends, not a process that stays' : undefined;
