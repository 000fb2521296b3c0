// The action log of a host in a table of steps, which ends when its process dies; and the fault that a case plans at one
// place. troubled-host.ts writes the actions.
import * as fs from 'node:fs';

/** The fault of the first process: its place, as `before flush.tree`, `begin canary`, `notify 2` or `hook 2`; and its kind. */
export interface Trouble {
  readonly at?: string;
  readonly what?: 'killed' | 'ENOSPC' | 'EIO' | 'a bug';
  /** Exit code by command, for generation 2 only: `check`, `canary`, `load` or `probe`; 1 rejects. */
  readonly exitCodes?: Readonly<Record<string, number>>;
  /** Those exit codes apply to generation 1 too. */
  readonly isAlways?: true;
  /** The worker refuses generation 2; of several workers only `b` does. */
  readonly isRefusing?: true;
  /**
   * Undefined: one worker that is reset. `set`: three workers, notified together. `rolling`: three, one by one. `restarted`:
   * its changed configuration requires a restart. `mortal`: it dies at generation 2, and the restore restarts it.
   */
  readonly workers?: 'set' | 'rolling' | 'restarted' | 'mortal';
  /** The fault of the server for one file; `file` is a part of its name. */
  readonly server?: { readonly file: string; readonly does: 'is away' | 'cuts off' };
  /** The fault of the release itself. */
  readonly release?: 'an older serial' | 'another manifest';
}

/** Thrown instead of a real kill. */
export class Killed extends Error {}

export interface ActionLog {
  write(text: string): void;
  take(): string;
  /** Ends the process run: nothing is logged afterwards. */
  die(): void;
  requireAlive(): void;
  readonly path: string;
}

/** Creates or empties the file at `path`, which receives the lines. @returns its log; `requireAlive` throws Killed after `die` */
export function openActionLog(path: string): ActionLog {
  let dead = false;
  fs.writeFileSync(path, '');
  return {
    path,
    write: (text) => {
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

/** Causes the fault if this is its place. @throws Killed, TypeError (`a bug`), or an Error with the code of the fault */
export function strike(log: ActionLog, { at, what }: Trouble, place: string): void {
  log.requireAlive();
  if (at !== place) return;
  if (what === 'killed') {
    log.write('killed');
    log.die();
    log.requireAlive();
  }
  throw what === 'a bug' ? new TypeError(what) : Object.assign(new Error(what), { code: what });
}
