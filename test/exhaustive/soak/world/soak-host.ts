// One host of a soak: its files, agent, policy users, proxy to the server and acknowledged releases. Checks all of them;
// chooses no action.
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { SoakAgent } from '../soak-agent.js';
import type { CommandRun } from '../soak-commands.js';
import { Acknowledged } from './acknowledged.js';
import { type FaultyProxy, faultyProxy } from './faulty-proxy.js';
import { commandTimeoutMs, HostCommands } from './host-commands.js';
import { graceMs, HostFiles } from './host-files.js';
import { KnownReleases } from './known-releases.js';
import { PolicyUsers } from './policy-users.js';
import { type PolicyRead, readPolicy } from './read-policy.js';
import type { SoakWorld } from './soak-world.js';

/** The faults that the driver causes on a host. */
export type FaultName = 'connection' | 'disk' | 'clock' | 'damage';

export class SoakHost {
  readonly name: string;
  readonly places: HostFiles;
  /** A small private file system that the driver has mounted, so that filling it fills no other disk. */
  readonly ownDisk: boolean;
  readonly known: KnownReleases;
  readonly faults = new Set<FaultName>();
  readonly agent: SoakAgent;
  readonly users: PolicyUsers;
  readonly commands: HostCommands;
  readonly acknowledged: Acknowledged;
  proxy!: FaultyProxy;
  readonly #world: SoakWorld;

  constructor(world: SoakWorld, index: number, { ownDisk }: { readonly ownDisk: boolean }) {
    this.#world = world;
    this.name = `host-${index}`;
    this.ownDisk = ownDisk;
    this.places = new HostFiles(world.directory, this.name);
    this.known = new KnownReleases(world.knownFile);
    this.acknowledged = new Acknowledged({ world, name: this.name, faults: this.faults });
    this.agent = new SoakAgent({
      world,
      places: this.places,
      hasBrokenDisk: () => this.faults.has('disk'),
      noteUnrest: () => this.acknowledged.noteUnrest(),
    });
    this.users = new PolicyUsers(world, this.places, this.acknowledged);
    this.commands = new HostCommands(world, this.places, this.agent);
  }

  async open(): Promise<void> {
    this.proxy = await faultyProxy(this.#world.random);
    this.places.writeConfig(this.proxy, this.#world.repository.sample.rootPath);
  }

  async writ(...args: readonly string[]): Promise<CommandRun> {
    const run = await this.commands.begin(...args).ended;
    if (args[0] === 'pull') this.acknowledged.note(run);
    return run;
  }

  /** Call before a rollback by an operator. */
  expectRollback(): void {
    this.acknowledged.forgetFor(commandTimeoutMs);
  }

  violate(text: string): void {
    this.#world.log.violate(`${this.name}: ${text}`);
  }

  /** Unmounts the private disk after a soak without violations. */
  unmountDisk(): void {
    if (this.ownDisk) spawnSync('umount', ['-l', this.places.disk]);
  }

  /** Copies the content of the private file system beside it, before the mount ends. */
  keepDisk(): void {
    if (!this.ownDisk) return;
    fs.cpSync(this.places.disk, `${this.places.disk}-kept`, { recursive: true, verbatimSymlinks: true });
  }

  read(): PolicyRead {
    return readPolicy(this.places.policy, { known: this.known, graceMs });
  }

  /** Checks every rule that holds at any moment. */
  check(): PolicyRead {
    this.agent.readLog();
    this.users.requireAll();
    this.agent.measure();
    const read = this.read();
    for (const text of read.violations) this.violate(text);
    this.acknowledged.require(read);
    return read;
  }
}
