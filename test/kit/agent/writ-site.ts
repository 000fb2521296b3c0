// A host with a signed repository on disk, a configuration file and `writ` commands. A long-running command is a process; the
// others run in this process.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../src/platform/time/clock.js';
import { jsonOf, runWrit, type WritRun } from '../cli/run-writ.js';
import { startWrit, type WritProcess } from '../cli/writ-process.js';
import type { TempDir } from '../disk/temp-dir.js';
import { type SampleRepository, sampleRepository } from '../repository/sample-repository.js';
import { quietPolls } from './quiet-polls.js';

export interface WritSite {
  readonly repository: SampleRepository;
  readonly config: string;
  readonly state: string;
  readonly run: string;
  /** Starts the agent and waits until it answers; on a host without a policy until its first poll has ended. */
  agent(): Promise<WritProcess>;
  /** Runs a command on this host until it ends. */
  writ(...args: string[]): Promise<WritRun>;
  /** As `writ`, with --json. */
  json(...args: string[]): Promise<Record<string, unknown>>;
  /** Starts a long-running command. */
  start(...args: string[]): WritProcess;
}

/** @param keys of the configuration, over its defaults */
export function writSite(dir: TempDir, keys: Readonly<Record<string, unknown>> = {}): WritSite {
  const repository = sampleRepository(dir, { clock: systemClock });
  const [state, run, config] = [dir.join('state'), dir.join('run'), dir.join('agent.yaml')];
  const defaults = { ...quietPolls(), bundles: [{ name: 'dns-edge' }] };
  const places = { repository: repository.url, root: repository.rootPath, state, run };
  fs.writeFileSync(config, JSON.stringify({ ...defaults, ...places, ...keys }));
  const writ = (...args: string[]): Promise<WritRun> => runWrit([...args, '--config', config]);
  return {
    repository,
    config,
    state,
    run,
    agent: async () => {
      const hasPolicy = fs.existsSync(join(state, 'policy/current'));
      const agent = startWrit(['agent', '--config', config]);
      await agent.waitForStderr(/"state":"run"/);
      // Waits for the first poll: otherwise it would take the release that the test publishes next, before the test's pull.
      if (!hasPolicy) await agent.waitForStderr(/"trigger":"start"/);
      return agent;
    },
    writ,
    json: async (...args) => jsonOf(await writ(...args, '--json')),
    start: (...args) => startWrit([...args, '--config', config]),
  };
}
