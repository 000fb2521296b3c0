// The cost of idle processes: an agent and a server without requests, the cost of a poll to the agent and to the server,
// and beside the server nginx.
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { startWrit, type WritProcess } from '../test/kit/cli/writ-process.js';
import { cpuMsOf, residentBytesOf } from './measure/process-cost.js';
import { configure, type Repository } from './subjects/writ.js';
import { pollAll } from './web/poll-load.js';
import type { StaticWeb } from './web/static-web.js';
import { startWritServer } from './web/writ-server.js';

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: 'MB' | 'ms' | 'requests' | 'bytes' | 'polls/s' | 'reports/s' | '%';
}

export interface Resting extends AsyncDisposable {
  /** Of the processes that have rested since they were started. */
  figures(): readonly Figure[];
}

const idleNode = 'setInterval(() => {}, 1e6)';

/** Starts the idle processes: an agent with the policy active, a server, and a Node that does nothing. */
export async function startResting(repository: Repository, home: string): Promise<Resting> {
  const server = await startWritServer(repository.repository);
  const config = configure(repository, server, home);
  const agent = await startAgent(config);
  const idle = startWrit([idleNode], {}, { entry: '-e' });
  const sinceMs = performance.now();
  const processes: readonly (readonly [string, number])[] = [
    ['agent at rest', agent.child.pid ?? 0],
    ['server at rest', server.pid],
    ['a Node that does nothing', idle.child.pid ?? 0],
  ];
  return {
    figures: () => {
      const minutes = ((performance.now() - sinceMs) / 60_000).toFixed(0);
      return processes.map(([name, pid]) => ({
        name: `${name}, resident after ${minutes} min`,
        value: residentBytesOf(pid) / 1e6,
        unit: 'MB',
      }));
    },
    [Symbol.asyncDispose]: async () => {
      for (const one of [agent, server, idle]) await one[Symbol.asyncDispose]();
    },
  };
}

/** Resolves when it has polled once, and has the policy. */
async function startAgent(config: string): Promise<WritProcess> {
  const agent = startWrit(['agent', '--config', config]);
  await agent.waitForStderr(/"cycle ended"/);
  return agent;
}

/** What one poll with nothing new costs an agent, on the connection that it keeps. */
export async function agentPoll(
  repository: Repository,
  home: string,
  seconds: number,
): Promise<readonly Figure[]> {
  await using server = await startWritServer(repository.repository);
  const config = configure(repository, server, home, { pollEvery: '1s' });
  await using agent = await startAgent(config);
  const pid = agent.child.pid ?? 0;
  const polls = (): number => agent.stderr().split('"cycle ended"').length - 1;
  await setTimeout(3000);
  const begun = { polls: polls(), cpuMs: cpuMsOf(pid) };
  const served = await server.counted(async () => {
    await setTimeout(seconds * 1000);
    return { wallMs: 0, cpuMs: cpuMsOf(pid) - begun.cpuMs };
  });
  const count = Math.max(1, polls() - begun.polls);
  return [
    { name: 'a poll with nothing new, CPU of the agent', value: served.cpuMs / count, unit: 'ms' },
    { name: 'the same, requests', value: served.requests / count, unit: 'requests' },
    { name: 'the same, received with headers', value: served.receivedBytes / count, unit: 'bytes' },
  ];
}

export interface PollRate {
  readonly pollsPerCoreSecond: number;
  readonly residentBytes: number;
}

const rounds = 8;

/** The best round: what others on the machine do makes the others slower. @param pid of the one process that answers */
export function pollRate(pid: number, url: string, hosts: number, polls: number): Promise<PollRate> {
  return pollAll({ url: new URL(url), hosts, polls }, async (ask) => {
    // Before: a server in JavaScript compiles what it does often.
    for (let warming = 0; warming < rounds / 2; warming += 1) await ask();
    let leastMs = Number.POSITIVE_INFINITY;
    for (let round = 0; round < rounds; round += 1) {
      const beforeMs = cpuMsOf(pid);
      await ask();
      leastMs = Math.min(leastMs, cpuMsOf(pid) - beforeMs);
    }
    return {
      pollsPerCoreSecond: (Math.ceil(polls / hosts) * hosts * 1000) / leastMs,
      residentBytes: residentBytesOf(pid),
    };
  });
}

/** The same file from both, by a few hosts. @param nginx its process, and where it has the repository */
export async function serverPolls(
  { repository, notes }: Repository,
  nginx: Pick<StaticWeb, 'pid' | 'url'> | undefined,
  polls: number,
): Promise<readonly Figure[]> {
  // The log goes to a file, as that of nginx, because a pipe costs its reader time.
  await using server = await startWritServer(repository, [], { logFile: join(notes, 'polled-server.log') });
  const hosts = 16;
  const file = 'metadata/timestamp.json';
  const ours = await pollRate(server.pid, `${server.url}/${file}`, hosts, polls);
  const figures: Figure[] = [
    { name: 'writ serve: polls answered 304, per core', value: ours.pollsPerCoreSecond, unit: 'polls/s' },
  ];
  if (nginx === undefined) return figures;
  const theirs = await pollRate(nginx.pid, `${nginx.url}/${file}`, hosts, polls);
  const share = (100 * ours.pollsPerCoreSecond) / theirs.pollsPerCoreSecond;
  return [
    ...figures,
    { name: 'nginx: the same', value: theirs.pollsPerCoreSecond, unit: 'polls/s' },
    { name: 'writ serve: of what nginx answers (goal: 50)', value: share, unit: '%' },
  ];
}
