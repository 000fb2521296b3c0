// The parts of a soak: the repository and its server, the hosts, and the present faults with their ends. Owns start and end;
// the actions own everything between.
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Seeded } from '../../../kit/assert/seeded.js';
import { writProgram } from '../../../kit/cli/writ-program.js';
import { SoakLog } from '../soak-log.js';
import { type SoakProcess, SoakProcesses } from '../soak-processes.js';
import { type FaultName, SoakHost } from './soak-host.js';
import { SoakRepository, soakDirectory } from './soak-repository.js';

/** Space for about twenty generations; small enough to be filled at once. */
const ownDiskOptions = 'size=96m,nr_inodes=16k,mode=755';

interface Pending {
  readonly host: SoakHost;
  readonly fault: FaultName;
  readonly untilMs: number;
  readonly heal: () => void | Promise<void>;
}

export interface WorldOptions {
  readonly directory: string;
  readonly random: Seeded;
  readonly hosts: number;
  /** Whether private file systems can be mounted. */
  readonly mounts: boolean;
}

export class SoakWorld {
  readonly directory: string;
  readonly knownFile: string;
  readonly random: Seeded;
  readonly log: SoakLog;
  readonly processes = new SoakProcesses();
  readonly repository: SoakRepository;
  readonly hosts: readonly SoakHost[];
  #server: SoakProcess | undefined;
  #pending: Pending[] = [];

  constructor({ directory, random, hosts, mounts }: WorldOptions) {
    this.directory = directory;
    this.random = random;
    this.knownFile = join(directory, 'known.jsonl');
    fs.writeFileSync(this.knownFile, '');
    this.log = new SoakLog(join(directory, 'events.log'));
    this.repository = new SoakRepository(soakDirectory(join(directory, 'publisher')), this.knownFile, random);
    // Every second host, or the only one, has a private disk that can be filled.
    this.hosts = Array.from({ length: hosts }, (_, index) => {
      const ownDisk = mounts && (index % 2 === 1 || hosts === 1);
      if (ownDisk) mountDisk(join(directory, `host-${index}`, 'disk'));
      return new SoakHost(this, index, { ownDisk });
    });
  }

  /** Publishes a first release, starts the agents, then the policy users. */
  async open(): Promise<void> {
    for (const host of this.hosts) await host.open();
    await this.startServer();
    for (const bundle of ['edge', 'access'] as const) await this.repository.publish(bundle, 'good');
    for (const host of this.hosts) {
      await host.agent.start();
      const first = await host.writ('pull');
      if (first.exitCode !== 0) this.log.violate(`${host.name}: the first pull ended with ${first.exitCode}`);
      host.users.startAll();
    }
  }

  async startServer(): Promise<void> {
    const { processes, repository, directory } = this;
    const argv = [
      process.execPath,
      writProgram,
      'serve',
      '--repository',
      repository.sample.directory,
    ] as const;
    const server = processes.start({
      name: 'server',
      argv: [...argv, '--listen', '127.0.0.1:0', '--quiet'],
      stderrFile: join(directory, 'server.log'),
    });
    this.#server = server;
    let port: string | undefined;
    while (port === undefined && server.isRunning()) {
      port = /LISTENING http:\/\/127\.0\.0\.1:([0-9]+)/.exec(server.stdout())?.[1];
      await sleep(10);
    }
    if (port === undefined) this.log.violate(`the server did not start: ${server.stdout()}`);
    for (const host of this.hosts) host.proxy.target(Number(port));
  }

  async killServer(): Promise<void> {
    this.#server?.kill('SIGKILL');
    await this.#server?.ended;
    this.log.count('kills');
    this.log.count('kills of the server');
  }

  /** @param heal called when the time is over, or earlier when every fault must end */
  breakFor(host: SoakHost, fault: FaultName, forMs: number, heal: Pending['heal']): void {
    host.faults.add(fault);
    this.#pending.push({ host, fault, untilMs: performance.now() + forMs, heal });
  }

  /** Ends each fault after its time. */
  async healDue(): Promise<void> {
    const nowMs = performance.now();
    await this.#heal((one) => one.untilMs <= nowMs);
  }

  async healAll(): Promise<void> {
    await this.#heal(() => true);
  }

  async #heal(isPending: (one: Pending) => boolean): Promise<void> {
    const due = this.#pending.filter(isPending);
    this.#pending = this.#pending.filter((one) => !due.includes(one));
    for (const { host, fault, heal } of due) {
      await heal();
      host.faults.delete(fault);
      host.acknowledged.noteUnrest();
      this.log.event(`${host.name}: the ${fault} is well again`);
    }
  }

  async close(): Promise<void> {
    this.processes.killAll();
    for (const host of this.hosts) await host.proxy?.close();
  }
}

function mountDisk(path: string): void {
  fs.mkdirSync(path, { recursive: true });
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', ownDiskOptions, 'tmpfs', path], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`no file system can be mounted: ${stderr}`);
}
