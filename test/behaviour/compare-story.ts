// One story with both checkouts: in the same directory one after the other, from identical copies. Owns what both
// start from; the script decides what happens.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../kit/programs/free-port.js';
import type { Checkout } from './checkout.js';
import { differencesOf } from './difference.js';
import { type Play, playStory } from './play-story.js';
import { type Recording, readRecordings } from './recording.js';
import { common, type Story } from './stories.js';

/** One run of the comparison. */
export interface Ground {
  readonly a: Checkout;
  readonly b: Checkout;
  /** Temporary, and short: sockets lie below it. */
  readonly base: string;
  /** Epoch milliseconds at the first command of every story. */
  readonly startMs: number;
  /** Ends it: stories run in process groups of their own, which a signal to this process does not reach. */
  readonly signal: AbortSignal;
}

export interface Compared {
  readonly a: readonly Recording[];
  readonly b: readonly Recording[];
  readonly differences: readonly string[];
}

/** Each stage starts this long after the one before it, so that its times are above those. */
const stageMs = 60_000;

/** Makes what all stories start from. @throws Error when that cannot be made */
export async function prepareCommon(ground: Ground): Promise<void> {
  const directory = join(ground.base, 'common');
  await prepare(ground, { script: common, directory, form: 'human', ports: [], startMs: ground.startMs });
}

export async function compareStory(ground: Ground, story: Story): Promise<Compared> {
  const directory = join(ground.base, story.name);
  const kept = `${directory}.kept`;
  const stage = {
    form: story.form,
    directory,
    ports: [await freePort(), await freePort(), await freePort(), await freePort()],
  };
  copyTree(join(ground.base, 'common'), directory);
  if (story.preparation !== undefined) {
    await prepare(ground, { ...stage, script: story.preparation, startMs: ground.startMs + stageMs });
  }
  copyTree(directory, kept);
  const sides: (readonly Recording[])[] = [];
  for (const checkout of [ground.a, ground.b]) {
    rmSync(directory, { recursive: true, force: true });
    copyTree(kept, directory);
    const startMs = ground.startMs + 2 * stageMs;
    sides.push(await recordingsOf(ground, { ...stage, script: story.script, startMs, checkout }));
  }
  for (const path of [directory, kept]) rmSync(path, { recursive: true, force: true });
  const [a = [], b = []] = sides;
  return { a, b, differences: [...brokenOff(a), ...differencesOf(a, b)] };
}

type Stage = Omit<Play, 'records' | 'checkout' | 'signal'>;

async function prepare(ground: Ground, stage: Stage): Promise<void> {
  const records = `${stage.directory}.records`;
  const end = await playStory({ ...stage, records, checkout: ground.a, signal: ground.signal });
  rmSync(records, { recursive: true, force: true });
  if (end !== whole) throw new Error(`${stage.script} ${end}`);
}

async function recordingsOf(
  ground: Ground,
  play: Omit<Play, 'records' | 'signal'>,
): Promise<readonly Recording[]> {
  const records = `${play.directory}.records`;
  const end = await playStory({ ...play, records, signal: ground.signal });
  const words = wordsOf(ground, play);
  const recordings = readRecordings(records, { words, startMs: ground.startMs });
  rmSync(records, { recursive: true, force: true });
  return [...recordings, { title: storyEnd, text: `${end}\n` }];
}

const storyEnd = 'the end of the story';
const whole = 'ended';

/** A story that did not reach its end shows nothing, even where both broke off at the same place. */
function brokenOff(recordings: readonly Recording[]): readonly string[] {
  const end = recordings.find(({ title }) => title === storyEnd)?.text.trim();
  return end === whole ? [] : [`  the story itself ${end}`];
}

function wordsOf(
  { a, b }: Ground,
  { directory, ports }: Pick<Stage, 'directory' | 'ports'>,
): [string, string][] {
  return [
    [directory, 'STORY'],
    [a.directory, 'CHECKOUT'],
    [b.directory, 'CHECKOUT'],
    ...ports.map((port, index): [string, string] => [`127.0.0.1:${port}`, `127.0.0.1:PORT${index + 1}`]),
  ];
}

/** With modes, times and links as they are; sockets are left behind as what they are. */
function copyTree(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to]);
}
