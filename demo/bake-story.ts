// Part of the demo, where supervisord is installed: a release is accepted and confirmed, its worker crashes some seconds later, and the
// host goes back by itself. Owns this host, its worker and its releases.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { defaultPath } from '../src/platform/process/run-command.js';
import { publish } from './access-story.js';
import { Unexpected } from './screen.js';
import type { Stage } from './stage.js';

const waitMs = 60_000;
const config = 'edge.yaml';
const worker = join(import.meta.dirname, 'edge-worker.js');

/** @throws Unexpected for any answer or exit code that is not as it has to be */
export async function playBakeStory(stage: Stage, repositoryUrl: string): Promise<void> {
  if (!defaultPath.split(':').some((folder) => existsSync(join(folder, 'supervisord')))) {
    stage.screen.say(
      '\nNot shown: a worker that crashes some seconds after it accepted a release. To see it:',
    );
    stage.screen.say('  apt-get install supervisor');
    return;
  }
  stage.screen.step(
    'A crash after everything was confirmed',
    'A release stays on trial for its bake time: here ten seconds, by default ten minutes. Its worker accepts the second',
    'release, its probe confirms it, and five seconds later a task of the worker fails. No person acts.',
  );
  await startEdgeHost(stage, repositoryUrl);
  await untilAnswer(stage, 'edge-1');
  await stage.writ(['pull', '--settled', '--config', config], { exitCode: 0, says: ['edge 1'] });
  await publishEdge(stage, { serial: 2, routes: [] });
  await stage.writ(['pull', '--config', config], { exitCode: 0, says: ['ACTIVATED', '(edge 2, edge-2)'] });
  await untilAnswer(stage, 'edge-2');
  stage.screen.say('\nIt is accepted, in use and confirmed. Some seconds later:');
  await stage.writ(['pull', '--settled', '--config', config], { exitCode: 5, says: ['BAKE_FAILED'] });
  await untilAnswer(stage, 'edge-1');
}

async function startEdgeHost(stage: Stage, repositoryUrl: string): Promise<void> {
  mkdirSync(stage.path('edge'));
  mkdirSync(stage.path('edge-supervisor'));
  await publishEdge(stage, { serial: 1, routes: ['/'] });
  const text = configurationText(stage, repositoryUrl);
  writeFileSync(stage.path(config), text);
  stage.screen.command(['cat', config]);
  stage.screen.output(text);
  const agent = stage.startWrit(['agent', '--config', config]);
  await agent.waitFor('stderr', /"msg":"cycle ended"/);
  const file = join('edge-supervisor', 'supervisord.conf');
  writeFileSync(stage.path(file), supervisorText(stage));
  stage.screen.command(['supervisord', '-c', file], 'background');
  stage.start('supervisord', ['supervisord', '-c', stage.path(file)]);
}

async function publishEdge(
  stage: Stage,
  { serial, routes }: { readonly serial: number; readonly routes: readonly string[] },
): Promise<void> {
  const revision = `edge-${serial}`;
  writeFileSync(stage.path('edge', 'edge.json'), `${JSON.stringify({ version: revision, routes })}\n`);
  await publish(stage, { source: 'edge', bundle: 'edge', revision, serial });
}

function configurationText(stage: Stage, repositoryUrl: string): string {
  return `repository: ${repositoryUrl}/
root: ${stage.path('repo', 'metadata', '1.root.json')}
state: ${stage.path('edge-state')}
run: ${stage.path('edge-run')}
host: { id: edge }
poll: { every: 1h }
bundles:
  - name: edge
    bake: { for: 10s }
workers:
  - name: edge
    uses: [edge]
    reset: { supervisord: ${stage.path('edge-supervisor', 'sock')}, group: edge, signal: HUP }
    probe:
      run: [${process.execPath}, ${worker}, ask, "{bundle}/edge.json", ${stage.path('edge.sock')}]
      sandbox: off
`;
}

/** A signal that comes before Node listens to it would end the worker, so the shell ignores it until then. */
function supervisorText(stage: Stage): string {
  const directory = stage.path('edge-supervisor');
  const policy = stage.path('edge-state', 'policy', 'current', 'edge', 'edge.json');
  return `[supervisord]
nodaemon=true
logfile=${directory}/log
pidfile=${directory}/pid
childlogdir=${directory}
[unix_http_server]
file=${directory}/sock
chmod=0700
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
[program:edge]
command=/bin/sh -c "trap '' HUP; exec ${process.execPath} ${worker} ${policy} ${stage.path('edge.sock')}"
`;
}

/** Shows the question and its answer. @throws Unexpected when the worker does not answer so within a minute */
async function untilAnswer(stage: Stage, wanted: string): Promise<void> {
  stage.screen.command(['curl', '--unix-socket', 'edge.sock', 'http://edge/']);
  let answer: string | undefined;
  for (const endMs = performance.now() + waitMs; performance.now() < endMs; await setTimeout(100)) {
    answer = await askEdge(stage.path('edge.sock'));
    if (answer === wanted) return stage.screen.output(answer);
  }
  throw new Unexpected(`the worker answers ${answer ?? 'nothing'}, expected ${wanted}`);
}

function askEdge(socketPath: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const asked = request({ socketPath, path: '/', timeout: 1000, agent: false }, (response) => {
      response.setEncoding('utf8').once('data', (text: string) => resolve(text.trim()));
      response.once('error', () => resolve(undefined));
    });
    asked.once('timeout', () => asked.destroy());
    asked.once('error', () => resolve(undefined));
    asked.once('close', () => resolve(undefined));
    asked.end();
  });
}
