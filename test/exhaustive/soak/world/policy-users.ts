// Those who use the policy of a host in a soak: a plain reader, a native worker and a daemon. Starts them, and hears what
// they tell; whether a lower serial was in order is asked of what the host has acknowledged.
import { join } from 'node:path';
import type { SoakProcess } from '../soak-processes.js';
import type { Acknowledged } from './acknowledged.js';
import { graceMs, type HostPlaces } from './host-places.js';
import type { UserLine, UserSettings } from './policy-user.js';
import type { SoakWorld } from './soak-world.js';

const userScript = join(import.meta.dirname, 'policy-user.js');

export class PolicyUsers {
  readonly #world: SoakWorld;
  readonly #places: HostPlaces;
  readonly #acknowledged: Acknowledged;
  readonly #users = new Map<UserSettings['kind'], SoakProcess>();

  constructor(world: SoakWorld, places: HostPlaces, acknowledged: Acknowledged) {
    this.#world = world;
    this.#places = places;
    this.#acknowledged = acknowledged;
  }

  startAll(): void {
    for (const kind of ['reader', 'native', 'daemon'] as const) this.#start(kind);
  }

  #start(kind: UserSettings['kind']): void {
    const { processes, knownFile } = this.#world;
    const settings: UserSettings = {
      kind,
      policy: this.#places.policy,
      known: knownFile,
      graceMs,
      socket: join(this.#places.run, 'workers/portal.sock'),
      pidFile: join(this.#places.directory, 'daemon.pid'),
    };
    const user = processes.start({
      name: `${kind} of ${this.#places.name}`,
      argv: [process.execPath, userScript, JSON.stringify(settings)],
      stderrFile: join(this.#places.directory, `${kind}.log`),
      onLine: (line) => this.#hear(JSON.parse(line) as UserLine),
    });
    this.#users.set(kind, user);
  }

  async kill(kind: 'native' | 'daemon'): Promise<void> {
    const user = this.#users.get(kind);
    user?.kill('SIGKILL');
    await user?.ended;
    this.#acknowledged.noteUnrest();
    this.#start(kind);
  }

  requireAll(): void {
    for (const user of this.#users.values()) {
      if (!user.isRunning()) this.#world.story.violate(`the ${user.name} has ended`);
    }
  }

  #hear(line: UserLine): void {
    const { story } = this.#world;
    if (line.type === 'count') {
      story.count('reads', line.reads);
      story.count('files read', line.files);
      story.count('reads held up too long to judge', line.late);
    } else if (line.type === 'violation') story.violate(`${this.#places.name}: ${line.text}`);
    else this.#acknowledged.judgeLower(line);
  }
}
