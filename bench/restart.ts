// How long `writ agent` takes to be ready: at the first start after a boot, when every byte is read, and when the agent
// alone was restarted. From the spawn to the state `run`.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startWrit } from '../test/kit/cli/writ-process.js';
import type { Figure } from './at-rest.js';
import { outputOf, writProgram } from './measure/measured-program.js';
import { cpuMsOf } from './measure/process-cost.js';
import { summarize } from './measure/statistics.js';
import { configure, type Repository } from './subjects/writ.js';
import { startWritServer } from './web/writ-server.js';

interface Start {
  readonly wallMs: number;
  /** The processor time of this process until then, which a busy machine does not change. */
  readonly cpuMs: number;
}

export async function restarts(
  repository: Repository,
  home: string,
  rounds: number,
): Promise<readonly Figure[]> {
  await using server = await startWritServer(repository.repository);
  const config = configure(repository, server, home);
  await outputOf([...writProgram, 'pull', '--config', config]);
  const boots = await starts(config, rounds, () => forgetBoot(join(home, 'state', 'ledger.json')));
  const alone = await starts(config, rounds, () => undefined);
  return [
    ...figuresOf('agent ready after a boot', boots),
    ...figuresOf('agent ready after its own restart', alone),
  ];
}

async function starts(config: string, rounds: number, before: () => void): Promise<readonly Start[]> {
  const all: Start[] = [];
  for (let round = 0; round < rounds; round += 1) {
    before();
    all.push(await startOnce(config));
  }
  return all;
}

/** The agent has ended in good order when this resolves. */
async function startOnce(config: string): Promise<Start> {
  const begunMs = performance.now();
  await using agent = startWrit(['agent', '--config', config]);
  await agent.waitForStderr(/"state":"run"/);
  const start = { wallMs: performance.now() - begunMs, cpuMs: cpuMsOf(agent.child.pid ?? 0) };
  agent.child.kill('SIGTERM');
  await agent.ended;
  return start;
}

/** As after a boot: the ledger names another one. */
function forgetBoot(ledger: string): void {
  const value = JSON.parse(readFileSync(ledger, 'utf8')) as Record<string, unknown>;
  writeFileSync(ledger, JSON.stringify({ ...value, verifiedBootId: 'another' }));
}

function figuresOf(name: string, all: readonly Start[]): readonly Figure[] {
  const median = (of: (start: Start) => number): number => summarize(all.map(of))?.median ?? Number.NaN;
  return [
    { name: `${name}, wall`, value: median(({ wallMs }) => wallMs), unit: 'ms' },
    { name: `${name}, CPU`, value: median(({ cpuMs }) => cpuMs), unit: 'ms' },
  ];
}
