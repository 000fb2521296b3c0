// A subject of the comparison: its work in each task, and the programs that it needs. Types only, and the names of tasks.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Sample } from '../measure/sample.js';
import type { StaticWeb } from '../web/static-web.js';

/** In this order: each task finds what those before it left of the same round. */
export const tasks = ['publish', 'first sync', 'nothing new', 'update', 'status'] as const;
export type Task = (typeof tasks)[number];

export interface Need {
  readonly program: string;
  readonly debianPackage: string;
}

export interface Published {
  /** Of this subject alone, empty. */
  readonly directory: string;
  /** Directories of the two versions, which stay unchanged. */
  readonly first: string;
  readonly second: string;
  /** Serves `directory` of every subject below its name. */
  readonly web: StaticWeb;
}

/** @param home of this round: a directory of its own, kept from task to task */
export type Act = (home: string) => Promise<Sample>;

export interface Ready extends AsyncDisposable {
  readonly acts: Partial<Readonly<Record<Task, Act>>>;
  /** From here on the second version is what there is. */
  publishSecond(): Promise<void>;
}

export interface Subject {
  readonly name: string;
  readonly needs: readonly Need[];
  /** The facts that a reader needs to compare. */
  readonly note: string;
  /** Publishes the first version. */
  setUp(place: Published): Promise<Ready>;
}

/** Beside the PATH, which often has no sbin. */
const always = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** @param path as the environment has it @returns the Debian packages that are missing */
export function missing(needs: readonly Need[], path = process.env['PATH'] ?? ''): readonly string[] {
  const searched = [...path.split(':'), ...always].filter((one) => one !== '');
  const isHere = (program: string): boolean => searched.some((folder) => existsSync(join(folder, program)));
  return needs.filter(({ program }) => !isHere(program)).map(({ debianPackage }) => debianPackage);
}

export const webNeed: Need = { program: 'nginx', debianPackage: 'nginx-light' };
