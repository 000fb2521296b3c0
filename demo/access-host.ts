// The host of part one: an agent and two native workers, and the question that is put to the workers after every
// step. Owns their configuration; what is published is the story's.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Child } from './children.js';
import { expectEqual, Unexpected } from './screen.js';
import { project, type Stage } from './stage.js';

const workerNames = ['worker-1', 'worker-2'] as const;
const question = '/allowed?user=bob&action=report.write';
const agentConfig = 'agent.yaml';

interface Worker {
  readonly name: string;
  readonly url: string;
}

export interface AccessHost {
  readonly configFlags: readonly string[];
  readonly agent: Child;
  /**
   * Asks both workers, shows their answers and holds them to what they have to be.
   * @throws Unexpected
   */
  expectAnswers(wanted: AccessAnswer): Promise<void>;
}

export interface AccessAnswer {
  /** May bob write reports? */
  readonly allowed: boolean;
  readonly generation: number;
}

/** @param repositoryUrl as `writ serve` said it */
export async function startAccessHost(stage: Stage, repositoryUrl: string): Promise<AccessHost> {
  const configuration = configurationText(stage, repositoryUrl);
  writeFileSync(stage.path(agentConfig), configuration);
  stage.screen.command(['cat', agentConfig]);
  stage.screen.output(configuration);
  const configFlags = ['--config', agentConfig] as const;
  const agent = stage.startWrit(['agent', ...configFlags]);
  await agent.waitFor('stderr', /"msg":"cycle ended"/);
  const workers: Worker[] = [];
  for (const name of workerNames) workers.push(await startWorker(stage, name, 'run'));
  return { configFlags, agent, expectAnswers: (wanted) => expectAnswers(stage, workers, wanted) };
}

function configurationText(stage: Stage, repositoryUrl: string): string {
  return `repository: ${repositoryUrl}/
root: ${stage.path('repo', 'metadata', '1.root.json')}
state: ${stage.path('state')}
run: ${stage.path('run')}
host: { id: demo }
poll: { every: 1h }
bundles:
  - name: access
    checks:
      - name: policy.yaml is an access policy
        parse: ["policy.yaml"]
        schema: ${join(project, 'bundles', 'access', 'policy.schema.json')}
workers:
  - name: access
    uses: [access]
    reset: { native: access, timeout: 5s }
`;
}

/** @param run the directory of the agent's sockets */
export async function startWorker(stage: Stage, name: string, run: string): Promise<Worker> {
  const program = join(import.meta.dirname, 'access-worker.js');
  const args = [stage.path(run, 'workers', 'access.sock'), '0', name] as const;
  stage.screen.command(['node', program, ...args], 'background');
  const worker = stage.start(name, [process.execPath, program, ...args]);
  const [line, url = ''] = await worker.waitFor('stdout', /.*listens on (http:\S+)\n/);
  stage.screen.output(line);
  return { name, url };
}

async function expectAnswers(stage: Stage, workers: readonly Worker[], wanted: AccessAnswer): Promise<void> {
  for (const { name, url } of workers) {
    stage.screen.command(['curl', `${url}${question}`]);
    const answer = await answerOf(url, wanted.generation);
    stage.screen.output(answer);
    expectEqual(`the answer of ${name}`, JSON.parse(answer), { ...wanted, name });
  }
}

/** A worker that has just started is notified in its own time: asked again, for at most 10 s, until it has a policy. */
async function answerOf(url: string, generation: number): Promise<string> {
  for (const deadlineMs = performance.now() + 10_000; performance.now() < deadlineMs; ) {
    const answer = await (await fetch(`${url}${question}`)).text();
    if (generation === 0 || !answer.includes('"generation":null')) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Unexpected(`${url} got no policy within 10 s`);
}
