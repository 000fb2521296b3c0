// The steps of the cases: publish a release, confirm a daemon on the first release, query both sides. Decides no order of
// events.
import type { Daemon, Instance, Tree } from '../parts/daemon.js';
import type { Answers, AskOptions } from '../stage/host.js';
import type { Observation, Scene } from './case.js';

type Kind = 'good' | 'bad' | 'half';

function tree({ daemon, stage }: Scene, kind: Kind, version: string): Tree {
  const make = daemon[kind];
  if (typeof make !== 'function') throw new Error(make.never);
  return make(version, stage);
}

export async function publish(scene: Scene, version: string, kind: Kind = 'good'): Promise<void> {
  await scene.host.publish(version, tree(scene, kind, version), scene.daemon.stamps);
}

interface ObservationOptions extends AskOptions {
  readonly release?: Observation['release'];
  readonly command?: 'pull' | 'rollback';
}

export async function observe(
  { host, instance }: Scene,
  what: string,
  { release = 'good', command = 'pull', ...options }: ObservationOptions = {},
): Promise<Observation> {
  const answers = await host.ask(command, options);
  return { what, release, answers, served: await servedBy(instance, answers) };
}

/**
 * The number of queries when Writ reports the release as confirmed: a daemon on a busy machine may respond too late.
 */
const maxAsked = 4;

export async function servedBy(instance: Instance, answers: Answers): Promise<string | undefined> {
  let served = await instance.ask();
  for (let asked = 1; asked < maxAsked && answers.confirmed && served !== answers.active; asked += 1)
    served = await instance.ask();
  return served;
}

/** Publishes v1 until the daemon serves it and Writ confirms it. */
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

/** The reason why a case of a running daemon cannot run with a program that exits. */
export const noProcess = ({ process }: Daemon): string | undefined =>
  process === 'none' ? 'it is a program that ends, not a process that stays' : undefined;
