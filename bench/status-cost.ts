// The cost of `writ status` on a host with two notified workers: beside a running agent, with the cost of its answer, and
// without an agent. The workers are stand-ins that answer at once.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startWrit } from '../test/kit/cli/writ-process.js';
import { startFakeKresd } from '../test/kit/workers/fake-kresd.js';
import type { Figure } from './at-rest.js';
import { measured, outputOf, writProgram } from './measure/measured-program.js';
import { cpuMsOf } from './measure/process-cost.js';
import { summarize } from './measure/statistics.js';
import { bundleName, configure, type Repository } from './subjects/writ.js';
import { startWritServer } from './web/writ-server.js';

const workerCount = 2;

export async function statusCosts(
  repository: Repository,
  home: string,
  rounds: number,
): Promise<readonly Figure[]> {
  const control = join(home, 'control');
  mkdirSync(control, { recursive: true });
  const names = Array.from({ length: workerCount }, (_, index) => join(control, String(index)));
  const workers = await Promise.all(names.map((path) => startFakeKresd(path)));
  try {
    await using server = await startWritServer(repository.repository);
    const reset = { kresd: join(control, '*'), command: 'policy_reset()', expect: '0' };
    const group = { name: 'resolver', uses: [bundleName], reset };
    const config = configure(repository, server, home, { workers: [group] });
    await outputOf([...writProgram, 'pull', '--config', config]);
    const status = async (): Promise<number> => {
      const args = [...writProgram, 'status', '--json', '--config', config];
      const { cpuMs = Number.NaN, stdout } = await measured(args, { notes: home });
      const { workers: seen } = JSON.parse(stdout) as { workers: readonly { state: string }[] };
      const notified = seen.filter(({ state }) => state === 'notified').length;
      if (notified !== workerCount) throw new Error(`${notified} workers notified: ${stdout}`);
      return cpuMs;
    };
    const alone = await repeated(rounds, status);
    await using agent = startWrit(['agent', '--config', config]);
    await agent.waitForStderr(/"state":"run"/);
    const pid = agent.child.pid ?? 0;
    await status();
    const beforeMs = cpuMsOf(pid);
    const beside = await repeated(rounds, status);
    const agentMs = (cpuMsOf(pid) - beforeMs) / rounds;
    return [
      { name: 'writ status, two workers, no agent: CPU', value: alone, unit: 'ms' },
      { name: 'writ status, two workers, agent runs: CPU', value: beside, unit: 'ms' },
      { name: 'the same, CPU of the agent', value: agentMs, unit: 'ms' },
    ];
  } finally {
    for (const worker of workers) await worker.close();
  }
}

/** @returns the median */
async function repeated(rounds: number, act: () => Promise<number>): Promise<number> {
  const all: number[] = [];
  for (let round = 0; round < rounds; round += 1) all.push(await act());
  return summarize(all)?.median ?? Number.NaN;
}
