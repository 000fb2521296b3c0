// The goals, each a ratio of Writ to a peer of the same run, and whether it is met. Pure.
import type { Comparison } from '../compare.js';
import type { Sample } from '../measure/sample.js';
import { summarize } from '../measure/statistics.js';
import type { Task } from '../subjects/subject.js';
import { ratio } from './format.js';
import { alignTable } from './table.js';

interface Goal {
  readonly task: Task;
  readonly peer: string;
  readonly what: string;
  /** Of Writ. */
  readonly ours: (sample: Sample) => number | undefined;
  readonly theirs: (sample: Sample) => number | undefined;
  readonly atMost: number;
}

const cycle = {
  what: 'cycle to swap',
  ours: ({ toSwapMs }: Sample) => toSwapMs,
  theirs: ({ wallMs }: Sample) => wallMs,
};
const received = {
  what: 'received',
  ours: ({ receivedBytes }: Sample) => receivedBytes,
  theirs: ({ receivedBytes }: Sample) => receivedBytes,
};
const cpu = { what: 'CPU', ours: ({ cpuMs }: Sample) => cpuMs, theirs: ({ cpuMs }: Sample) => cpuMs };
/** The longest start of a process. */
const startMs = 400;
const process = {
  what: 'the process without 0.4 s',
  ours: ({ wallMs }: Sample) => wallMs - startMs,
  theirs: ({ wallMs }: Sample) => wallMs,
};

const goals: readonly Goal[] = [
  { task: 'first sync', peer: 'GNU tar', ...cycle, atMost: 1 },
  { task: 'first sync', peer: 'GNU tar', ...process, atMost: 1 },
  { task: 'first sync', peer: 'GNU tar', ...cpu, atMost: 2 },
  { task: 'first sync', peer: 'casync', ...cycle, atMost: 0.5 },
  { task: 'first sync', peer: 'ostree', ...cycle, atMost: 0.25 },
  { task: 'update', peer: 'casync', ...cycle, atMost: 0.5 },
  { task: 'update', peer: 'rsync', ...cycle, atMost: 1 },
  { task: 'update', peer: 'casync', ...received, atMost: 0.05 },
  { task: 'update', peer: 'rsync', ...received, atMost: 0.05 },
];

/** Only the goals with a measured peer. */
export function drawGoals({ rows }: Comparison): string {
  const medianOf = (task: Task, name: string, of: Goal['ours']): number | undefined => {
    const samples = rows.find((row) => row.task === task && row.subject === name)?.samples ?? [];
    return summarize(samples.map(of).filter((value) => value !== undefined))?.median;
  };
  const lines = goals.flatMap(({ task, peer, what, ours, theirs, atMost }) => {
    const [mine, others] = [medianOf(task, 'writ', ours), medianOf(task, peer, theirs)];
    if (mine === undefined || others === undefined) return [];
    const is = mine / others;
    return [[`${task}, ${what}: times ${peer}`, ratio(atMost), ratio(is), is <= atMost ? 'met' : 'missed']];
  });
  return alignTable([['goal', 'at most', 'is', ''], ...lines]);
}
