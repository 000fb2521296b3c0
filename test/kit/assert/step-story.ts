// The story of a host in a table of steps: what anybody can see, line by line, until its process dies; and the trouble
// that it meets, at the place that a case names. Owns both; whose actions they are is troubled-host's.
import * as fs from 'node:fs';

/** What happens to the first process: where, as `before flush.tree`, `begin canary`, `notify 2` or `hook 2`; and what. */
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
   * Other workers than one that is reset: `set`, three of them told at once; `rolling`, one by one; `restarted`, since its
   * configuration is what changes; `mortal`, it dies of generation 2 and is restarted on the way back.
   */
  readonly workers?: 'set' | 'rolling' | 'restarted' | 'mortal';
  /** What the server does to one file, by a part of its name. */
  readonly server?: { readonly file: string; readonly does: 'is away' | 'cuts off' };
  /** What is wrong with the release itself. */
  readonly release?: 'an older serial' | 'another manifest';
}

/** Thrown in place of a kill. */
export class Killed extends Error {}

export interface Story {
  say(text: string): void;
  take(): string;
  /** Says nothing any more, and lets nothing happen. */
  die(): void;
  requireAlive(): void;
  readonly path: string;
}

/** Creates or empties the file at `path`, to which the lines are written. */
export function openStory(path: string): Story {
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

/** Lets the trouble happen if this is its place. */
export function strike(story: Story, { at, what }: Trouble, place: string): void {
  story.requireAlive();
  if (at !== place) return;
  if (what === 'killed') {
    story.say('killed');
    story.die();
    story.requireAlive();
  }
  throw what === 'a bug' ? new TypeError(what) : Object.assign(new Error(what), { code: what });
}
