// The files of a soak host, the configuration of its agent, and the command line of its program. Starts no process.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { configSchema } from '../../../../src/core/config/config-schema.js';
import { writProgram } from '../../../kit/cli/writ-program.js';

/** How long a generation stays after it was replaced: no reader may need longer for one reading. */
export const graceMs = 5000;

/** Whether this version of Writ scans for damage and repairs it. */
export const canRepair = configSchema.properties?.['scrub'] !== undefined;

const clockModule = join(import.meta.dirname, 'stepped-clock.js');

export class HostFiles {
  readonly name: string;
  readonly directory: string;
  /** The mount point of the host's private file system, if it has one. */
  readonly disk: string;
  readonly state: string;
  readonly policy: string;
  readonly run: string;
  readonly log: string;
  readonly clockFile: string;
  readonly configPath: string;

  constructor(above: string, name: string) {
    this.name = name;
    this.directory = join(above, name);
    this.disk = join(this.directory, 'disk');
    this.state = join(this.disk, 'state');
    this.policy = join(this.state, 'policy');
    this.run = join(this.directory, 'run');
    this.log = join(this.directory, 'agent.log');
    this.clockFile = join(this.directory, 'clock');
    this.configPath = join(this.directory, 'agent.yaml');
    for (const path of [this.state, this.run]) fs.mkdirSync(path, { recursive: true });
    fs.writeFileSync(this.clockFile, '0');
    fs.writeFileSync(this.log, '');
  }

  /** @param server that the agent downloads from @param root the bootstrap root */
  writeConfig(server: { readonly port: number }, root: string): void {
    fs.writeFileSync(this.configPath, JSON.stringify(this.#config(server.port, root)));
  }

  #config(port: number, root: string): Record<string, unknown> {
    return {
      repository: `http://127.0.0.1:${port}/`,
      root,
      state: this.state,
      run: this.run,
      host: { id: this.name },
      sandbox: 'auto',
      poll: { every: '1s' },
      keep: { generations: 3, grace: `${graceMs / 1000}s` },
      refusals: { retry: '5s' },
      ...(canRepair ? { scrub: { every: '10s' } } : {}),
      limits: { timeouts: { connect: '1s', idle: '2s', metadata: '5s', refresh: '10s', archive: '20s' } },
      bundles: [
        {
          name: 'edge',
          checks: [{ name: 'sane', run: ['sh', '-c', 'test ! -e "$1/refuse"', 'sh', '{bundle}'] }],
        },
        { name: 'access', checks: [{ name: 'parses', parse: ['*.yaml'] }] },
      ],
      workers: [
        { name: 'portal', uses: ['access'], reset: { native: 'portal', min: 0 } },
        {
          name: 'daemon',
          uses: ['edge'],
          reset: { signal: 'HUP', pidFile: join(this.directory, 'daemon.pid'), min: 0 },
        },
      ],
    };
  }

  argv(...args: readonly string[]): [string, ...string[]] {
    return [process.execPath, '--import', clockModule, writProgram, ...args, '--config', this.configPath];
  }

  env(): Record<string, string> {
    return { WRIT_SOAK_CLOCK: this.clockFile };
  }
}
