// One host of a soak: its places, its agent, those who use its policy, its way to the server, and what was acknowledged
// there, together. Looks at all of them; chooses no action.
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { SoakAgent } from '../soak-agent.js';
import type { CommandRun } from '../soak-commands.js';
import { Acknowledged } from './acknowledged.js';
import { type FaultyProxy, faultyProxy } from './faulty-proxy.js';
import { commandTimeoutMs, HostCommands } from './host-commands.js';
import { graceMs, HostPlaces } from './host-places.js';
import { KnownReleases } from './known-releases.js';
import { PolicyUsers } from './policy-users.js';
import { type PolicyRead, readPolicy } from './read-policy.js';
import type { SoakWorld } from './soak-world.js';

/** What is wrong with a host on purpose. */
export type FaultName = 'way' | 'disk' | 'clock' | 'damage';

export class SoakHost {
  readonly name: string;
  readonly places: HostPlaces;
  /** Mounted by the driver: its size is small, and filling it fills nothing else. */
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
    this.places = new HostPlaces(world.directory, this.name);
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

  /** A rollback by hand begins. */
  expectRollback(): void {
    this.acknowledged.forgetFor(commandTimeoutMs);
  }

  violate(text: string): void {
    this.#world.story.violate(`${this.name}: ${text}`);
  }

  /** Nothing was found: what is on its own disk may go. */
  unmountDisk(): void {
    if (this.ownDisk) spawnSync('umount', ['-l', this.places.disk]);
  }

  /** What lies on a file system that is about to go is kept beside it. */
  keepDisk(): void {
    if (!this.ownDisk) return;
    fs.cpSync(this.places.disk, `${this.places.disk}-kept`, { recursive: true, verbatimSymlinks: true });
  }

  read(): PolicyRead {
    return readPolicy(this.places.policy, { known: this.known, graceMs });
  }

  /** Everything that must hold at any moment. */
  look(): PolicyRead {
    this.agent.readLog();
    this.users.requireAll();
    this.agent.measure();
    const read = this.read();
    for (const text of read.violations) this.violate(text);
    this.acknowledged.require(read);
    return read;
  }
}
