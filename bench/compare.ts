// Every subject in turn, several times, so that all meet the same machine; and no file is deleted before all have ended:
// ext4 avoids inodes freed in the last seconds, and thousands of files made right after thousands were deleted take ten times as long.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Sample } from './measure/sample.js';
import { missing, type Published, type Ready, type Subject, type Task, tasks } from './subjects/subject.js';

export interface Row {
  readonly task: Task;
  readonly subject: string;
  readonly samples: readonly Sample[];
}

export interface Absent {
  readonly subject: string;
  readonly why: string;
}

export interface Comparison {
  readonly rows: readonly Row[];
  /** The subjects that are missing or failed. */
  readonly absent: readonly Absent[];
}

export interface CompareOptions {
  /** Empty; it is left full. */
  readonly work: string;
  readonly place: Pick<Published, 'first' | 'second' | 'web'>;
  /** The first subject is the reference of the comparison, so it must not fail. */
  readonly subjects: readonly Subject[];
  readonly rounds: number;
  logStep(progress: string): void;
}

export function directoryName(subject: string): string {
  return subject.replaceAll(/[^a-z]+/gi, '-').toLowerCase();
}

/** @returns what each subject that is installed cost in each task that it has */
export async function compare(options: CompareOptions): Promise<Comparison> {
  const contest: Contest = { ...options, absent: [], taking: [], samples: new Map() };
  try {
    for (const subject of options.subjects) await enter(contest, subject);
    for (const task of tasks) await runTask(contest, task);
  } finally {
    for (const { ready } of contest.taking) await ready[Symbol.asyncDispose]();
  }
  const { samples, absent, subjects } = contest;
  const rows = tasks.flatMap((task) =>
    subjects.map(({ name }) => ({ task, subject: name, samples: samples.get(`${task} ${name}`) ?? [] })),
  );
  return { rows: rows.filter((row) => row.samples.length > 0), absent };
}

interface Contest extends CompareOptions {
  readonly absent: Absent[];
  readonly taking: { readonly subject: Subject; readonly ready: Ready }[];
  readonly samples: Map<string, Sample[]>;
}

/** A failure of a peer is a note below the table; a failure of the first subject ends the benchmark. */
async function attempt(
  { absent, subjects }: Contest,
  subject: Subject,
  act: () => Promise<void>,
): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (subject === subjects[0]) throw error;
    absent.push({ subject: subject.name, why: `failed: ${beginningOf(error)}` });
  }
}

async function enter(contest: Contest, subject: Subject): Promise<void> {
  const packages = missing(subject.needs);
  if (packages.length > 0) {
    contest.absent.push({ subject: subject.name, why: `not installed: ${packages.join(', ')}` });
    return;
  }
  contest.logStep(`publish: ${subject.name}`);
  const directory = join(contest.work, 'published', directoryName(subject.name));
  mkdirSync(directory, { recursive: true });
  await attempt(contest, subject, async () => {
    contest.taking.push({ subject, ready: await subject.setUp({ ...contest.place, directory }) });
  });
}

async function runTask(contest: Contest, task: Task): Promise<void> {
  const { taking, absent, rounds, logStep } = contest;
  // A figure of publishing is that of the first version alone.
  const turns = task === 'publish' ? 1 : rounds;
  if (task === 'update') {
    logStep('publish the second version');
    for (const { subject, ready } of taking) await attempt(contest, subject, () => ready.publishSecond());
  }
  for (let round = 1; round <= turns; round += 1) {
    logStep(`${task}, round ${round} of ${turns}`);
    for (const { subject, ready } of taking) {
      const act = ready.acts[task];
      if (act === undefined || absent.some((one) => one.subject === subject.name)) continue;
      await attempt(contest, subject, async () => {
        const sample = await act(homeOf(contest.work, subject, round));
        const key = `${task} ${subject.name}`;
        contest.samples.set(key, [...(contest.samples.get(key) ?? []), sample]);
      });
    }
  }
}

function homeOf(work: string, { name }: Subject, round: number): string {
  const home = join(work, 'hosts', `${directoryName(name)}-${round}`);
  mkdirSync(home, { recursive: true });
  return home;
}

function beginningOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return (text.split('\n')[0] ?? '').slice(0, 200);
}
