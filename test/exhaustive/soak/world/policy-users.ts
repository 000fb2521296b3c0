// The users of a soak host's policy: a reader, a native worker and a daemon. Starts them and reads their reports. The
// acknowledged releases decide whether a lower serial was expected.
import { join } from 'node:path';
import type { SoakProcess } from '../soak-processes.js';
import type { Acknowledged } from './acknowledged.js';
import { graceMs, type HostFiles } from './host-files.js';
import type { UserLine, UserSettings } from './policy-user.js';
import type { SoakWorld } from './soak-world.js';

const userScript = join(import.meta.dirname, 'policy-user.js');

export class PolicyUsers {
  readonly #world: SoakWorld;
  readonly #places: HostFiles;
  readonly #acknowledged: Acknowledged;
  readonly #users = new Map<UserSettings['kind'], SoakProcess>();

  constructor(world: SoakWorld, places: HostFiles, acknowledged: Acknowledged) {
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
      onLine: (line) => this.#handleReport(JSON.parse(line) as UserLine),
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
      if (!user.isRunning()) this.#world.log.violate(`the ${user.name} has ended`);
    }
  }

  #handleReport(line: UserLine): void {
    const { log } = this.#world;
    if (line.type === 'count') {
      log.count('reads', line.reads);
      log.count('files read', line.files);
      log.count('reads held up too long to judge', line.late);
    } else if (line.type === 'violation') log.violate(`${this.#places.name}: ${line.text}`);
    else this.#acknowledged.judgeLower(line);
  }
}
