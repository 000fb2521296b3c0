// Part two of the demo, where kresd and dig are installed: two real resolvers on one port change their answers
// because a policy changed, and keep them when a broken one was published.
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { defaultPath } from '../src/platform/process/run-command.js';
import { publish } from './access-story.js';
import { type DnsHost, startDnsHost } from './dns-host.js';
import { expectEqual } from './screen.js';
import { project, type Stage } from './stage.js';

/** @throws Unexpected for any answer or exit code that is not as it has to be */
export async function tellDnsStory(stage: Stage, repositoryUrl: string): Promise<void> {
  const missing = ['kresd', 'dig'].filter((program) => !isInstalled(program));
  if (missing.length > 0) {
    stage.screen.say(
      `\nNot shown: two real resolvers (${missing.join(' and ')} not installed). To see them:`,
    );
    stage.screen.say('  apt-get install knot-resolver bind9-dnsutils');
    return;
  }
  const host = await startResolvers(stage, repositoryUrl);
  await publishSecond(stage, host);
  await publishUnparsable(stage, host);
}

function isInstalled(program: string): boolean {
  return defaultPath.split(':').some((folder) => existsSync(join(folder, program)));
}

async function startResolvers(stage: Stage, repositoryUrl: string): Promise<DnsHost> {
  stage.screen.step(
    'Two real resolvers',
    'No agent runs on this host: `writ pull` does the work alone. Two Knot Resolvers share one port.',
  );
  const host = await startDnsHost(stage, repositoryUrl);
  await host.expectAnswers('192.0.2.1');
  return host;
}

async function publishSecond(stage: Stage, host: DnsHost): Promise<void> {
  stage.screen.step(
    'Another answer',
    'The resolvers are not restarted; they are notified, and their answers are awaited.',
  );
  cpSync(join(project, 'bundles', 'dns-edge'), stage.path('dns-edge'), { recursive: true });
  edit(stage, '192.0.2.1', '192.0.2.2');
  await publish(stage, { source: 'dns-edge', bundle: 'dns-edge', revision: 'second', serial: 2 });
  await stage.writ(['pull', ...host.configFlags], {
    exitCode: 0,
    says: ['ACTIVATED generation 2 (dns-edge 2, second)'],
  });
  await host.expectAnswers('192.0.2.2');
  expectEqual('the list of resolver processes', host.pids(), host.firstPids);
}

async function publishUnparsable(stage: Stage, host: DnsHost): Promise<void> {
  stage.screen.step(
    'A zone that does not parse',
    'A resolver by itself loads it as an empty list and says that all is well. The check before the swap does not.',
  );
  edit(stage, '192.0.2.2', '192.0.2.999');
  await publish(stage, { source: 'dns-edge', bundle: 'dns-edge', revision: 'broken', serial: 3 });
  await stage.writ(['pull', ...host.configFlags], {
    exitCode: 3,
    says: ['REJECTED  dns-edge 3 [CHECK_FAILED]', 'block.rpz parses', 'block.rpz:6', 'stays active'],
  });
  await host.expectAnswers('192.0.2.2');
}

function edit(stage: Stage, from: string, to: string): void {
  stage.edit(join('dns-edge', 'block.rpz'), from, to);
}
