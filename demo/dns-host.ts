// The host of part two: two Knot Resolver workers with the sample configuration of docs/examples/dns-edge, on one
// loopback port, and the question that is put to them. Needs kresd and dig.
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultPath } from '../src/platform/process/run-command.js';
import { freePort } from '../test/kit/programs/free-port.js';
import type { Child } from './children.js';
import { expectEqual } from './screen.js';
import { project, type Stage } from './stage.js';

const configFile = 'dns-agent.yaml';
const checkFile = 'rpz-check.conf';
const samples = join(project, 'docs', 'examples', 'dns-edge');
const asked = 20;
const path = { PATH: defaultPath };

export interface DnsHost {
  readonly configFlags: readonly string[];
  readonly firstPids: readonly (number | undefined)[];
  /** Those of the workers that run now. */
  pids(): readonly (number | undefined)[];
  /**
   * Asks for app.example.com, 20 times, so that both workers are met.
   * @throws Unexpected when not all answers are this address
   */
  expectAnswers(address: string): Promise<void>;
}

export async function startDnsHost(stage: Stage, repositoryUrl: string): Promise<DnsHost> {
  installCheck(stage);
  const configuration = configurationText(stage, repositoryUrl);
  writeFileSync(stage.path(configFile), configuration);
  stage.screen.command(['cat', configFile]);
  stage.screen.output(configuration);
  const configFlags = ['--config', configFile] as const;
  await stage.writ(['pull', ...configFlags], {
    exitCode: 4,
    says: ['DEGRADED', 'generation 1 is active (dns-edge 1)', 'WORKERS_MISSING'],
  });
  stage.screen.say(
    'No resolver runs yet: the policy is active, no worker uses it, and the exit code shows it.',
  );
  mkdirSync(stage.path('kresd', 'control'), { recursive: true });
  // UDP and TCP share the number, and the workers share the port.
  const port = await freePort();
  const workers: Child[] = [];
  for (const id of ['1', '2']) workers.push(startWorker(stage, id, port));
  await untilAllAnswer(stage, port);
  const pids = () => workers.filter((worker) => worker.isRunning()).map((worker) => worker.pid);
  return {
    configFlags,
    firstPids: pids(),
    pids,
    expectAnswers: async (address) => {
      stage.screen.command(['dig', ...digArguments(port)]);
      const answers = await ask(stage, port);
      for (const [answer, count] of Object.entries(answers)) {
        stage.screen.say(`${answer}    (${count} of ${asked} answers)`);
      }
      expectEqual('what the resolvers answer', answers, { [address]: asked });
    },
  };
}

/** Every user may read this file, because the sandbox of root runs checks as `nobody`. The checkout may be private. */
function installCheck(stage: Stage): void {
  const sample = join(samples, checkFile);
  stage.screen.command(['install', '-m', '644', sample, checkFile]);
  copyFileSync(sample, stage.path(checkFile));
  chmodSync(stage.path(checkFile), 0o644);
}

function configurationText(stage: Stage, repositoryUrl: string): string {
  return `repository: ${repositoryUrl}/
root: ${stage.path('repo', 'metadata', '1.root.json')}
state: ${stage.path('dns-state')}
run: ${stage.path('dns-run')}
host: { id: demo-dns }
sandbox: auto
bundles:
  - name: dns-edge
    checks:
      - name: block.rpz parses
        run: [kresd, -n, -c, ${stage.path(checkFile)}, -c, "-", "{scratch}"]
        binds: [${stage.path(checkFile)}]
workers:
  - name: resolver
    uses: [dns-edge]
    when: ["block.rpz"]
    reset:
      kresd: ${stage.path('kresd', 'control')}/*
      command: policy_reset()
      confirms: true
      expect: "0"
`;
}

function startWorker(stage: Stage, id: string, port: number): Child {
  const env = {
    DNS_PORT: String(port),
    SYSTEMD_INSTANCE: id,
    WRIT_POLICY: stage.path('dns-state', 'policy'),
    CACHE_DIR: stage.path('kresd', 'cache'),
  };
  const argv = ['kresd', '-n', '-c', join(samples, 'kresd.conf'), stage.path('kresd')] as const;
  stage.screen.command(
    [...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...argv],
    'background',
  );
  return stage.start(`kresd ${id}`, argv, { ...path, ...env });
}

function digArguments(port: number): string[] {
  return ['+short', '+tries=1', '+time=2', '@127.0.0.1', '-p', String(port), 'app.example.com'];
}

/** @returns how often each answer came */
async function ask(stage: Stage, port: number): Promise<Readonly<Record<string, number>>> {
  const answers: Record<string, number> = {};
  for (let count = 0; count < asked; count += 1) {
    const dig = stage.start('dig', ['dig', ...digArguments(port)], path);
    await dig.ended;
    const answer = dig.stdout().trim() || 'no answer';
    answers[answer] = (answers[answer] ?? 0) + 1;
  }
  return answers;
}

/** A worker that is still starting takes a question and does not answer it. */
async function untilAllAnswer(stage: Stage, port: number): Promise<void> {
  for (let tries = 0; tries < 10; tries += 1) {
    if (!('no answer' in (await ask(stage, port)))) return;
  }
}
