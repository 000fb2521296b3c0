// One host of a soak: its agent as a real process, the processes that use its policy, its way to the server, its disk
// and its clock; and what was acknowledged there. Judges what its readers tell; chooses no action.
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { configSchema } from '../../src/core/config-schema.js';
import type { CycleResult } from '../../src/core/cycle-report.js';
import { exitCodeOfKind, isWritError } from '../../src/core/errors.js';
import { type FaultyProxy, faultyProxy } from './faulty-proxy.js';
import { KnownReleases } from './known-releases.js';
import type { UserLine, UserSettings } from './policy-user.js';
import { type PolicyRead, readPolicy } from './read-policy.js';
import { askOnce, parseJson, requestOf, summary } from './soak-commands.js';
import type { SoakProcess } from './soak-processes.js';
import type { SoakWorld } from './soak-world.js';

/** How long a generation that was left stays: no reader may need longer for one reading. */
export const graceMs = 5000;
/** A command that takes longer has hung: the ways to the server give up long before. */
const commandTimeoutMs = 150_000;
const startTimeoutMs = 60_000;
/** For so long after a fault an unacknowledged release may go back: recovery, a nack of its neighbour. */
const unrestMs = 120_000;

/** This Writ looks for damage and mends it. */
export const canRepair = configSchema.properties?.['scrub'] !== undefined;

const entry = join(import.meta.dirname, '..', '..', 'src', 'cli', 'main.js');
const clockModule = join(import.meta.dirname, 'stepped-clock.js');
const userScript = join(import.meta.dirname, 'policy-user.js');

/** What is wrong with a host on purpose. */
export type FaultName = 'way' | 'disk' | 'clock' | 'damage';

export interface CommandRun {
  readonly exitCode: number | null;
  readonly json: Record<string, unknown> | undefined;
  readonly durationMs: number;
}

export class SoakHost {
  readonly name: string;
  readonly state: string;
  readonly policy: string;
  readonly run: string;
  /** Mounted by the driver: its size is small, and filling it fills nothing else. */
  readonly ownDisk: boolean;
  readonly known: KnownReleases;
  readonly faults = new Set<FaultName>();
  proxy!: FaultyProxy;
  agent: SoakProcess | undefined;
  /** The agent was ended on purpose, or is about to be. */
  agentMayEnd = false;
  readonly #world: SoakWorld;
  readonly #dir: string;
  readonly #log: string;
  #logRead = 0;
  readonly #users = new Map<UserSettings['kind'], SoakProcess>();
  /** Serial by bundle that a pull has acknowledged. */
  readonly #floors = new Map<string, number>();
  readonly #activationsMs: number[] = [];
  #unrestAtMs = Number.NEGATIVE_INFINITY;
  #rollbackUntilMs = 0;

  constructor(world: SoakWorld, index: number, { ownDisk }: { readonly ownDisk: boolean }) {
    this.#world = world;
    this.name = `host-${index}`;
    this.ownDisk = ownDisk;
    this.#dir = join(world.directory, this.name);
    this.state = join(this.disk, 'state');
    this.policy = join(this.state, 'policy');
    this.run = join(this.#dir, 'run');
    this.#log = join(this.#dir, 'agent.log');
    this.known = new KnownReleases(world.knownFile);
    for (const path of [this.state, this.run]) fs.mkdirSync(path, { recursive: true });
    fs.writeFileSync(this.clockFile, '0');
    fs.writeFileSync(this.#log, '');
  }

  /** Where the host's own file system is mounted, if it has one. */
  get disk(): string {
    return join(this.#dir, 'disk');
  }

  get clockFile(): string {
    return join(this.#dir, 'clock');
  }

  get configPath(): string {
    return join(this.#dir, 'agent.yaml');
  }

  async open(): Promise<void> {
    this.proxy = await faultyProxy(this.#world.random);
    fs.writeFileSync(this.configPath, JSON.stringify(this.#config()));
  }

  #config(): Record<string, unknown> {
    return {
      repository: `http://127.0.0.1:${this.proxy.port}/`,
      root: this.#world.repository.sample.rootPath,
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
        { name: 'portal', uses: ['access'], reset: { native: 'portal' } },
        { name: 'daemon', uses: ['edge'], reset: { signal: 'HUP', pidFile: join(this.#dir, 'daemon.pid') } },
      ],
    };
  }

  // The agent

  async startAgent(): Promise<void> {
    const { processes, story } = this.#world;
    this.agentMayEnd = false;
    const from = fs.statSync(this.#log).size;
    const agent = processes.start({
      name: `agent of ${this.name}`,
      argv: this.#argv('agent'),
      env: this.#env(),
      stderrFile: this.#log,
    });
    this.agent = agent;
    story.count('starts of an agent');
    const deadlineMs = performance.now() + startTimeoutMs;
    while (agent.isRunning() && !this.#logHas('"state":"run"', from)) {
      if (performance.now() > deadlineMs) {
        story.violate(`${this.name}: the agent is not ready after ${startTimeoutMs / 1000} s`);
        return;
      }
      await sleep(20);
    }
  }

  killAgent(): void {
    if (this.agent?.isRunning() !== true) return;
    this.agentMayEnd = true;
    this.agent.kill('SIGKILL');
    this.#unrestAtMs = performance.now();
    this.#world.story.count('kills');
    this.#world.story.count('kills of an agent');
  }

  /** The agent runs afterwards, or it is said why it may not. */
  async ensureAgent(): Promise<void> {
    const { story } = this.#world;
    for (let tries = 0; tries < 20; tries++) {
      // One that was killed a moment ago still looks as if it ran.
      if (this.agent?.isRunning() === true && !this.agentMayEnd) return;
      const exitCode = await this.agent?.ended;
      const wasAsked = this.agentMayEnd || this.agent === undefined;
      // 6: a pull that was asked for by hand holds the lock; 1: nothing can be written.
      const mayEnd = wasAsked || exitCode === 6 || (exitCode === 1 && this.faults.has('disk'));
      if (!mayEnd)
        story.violate(`${this.name}: the agent ended by itself with ${exitCode}: ${this.#logEnd()}`);
      if (!wasAsked) {
        story.count(`agent ended by itself with ${exitCode}, excused`);
        await sleep(500);
      }
      if (story.violations.length > 0) return;
      await this.startAgent();
    }
    if (!this.faults.has('disk'))
      story.violate(`${this.name}: the agent does not stay up: ${this.#logEnd()}`);
  }

  #logHas(text: string, from: number): boolean {
    return fs.readFileSync(this.#log).subarray(from).includes(text);
  }

  #logEnd(): string {
    return fs.readFileSync(this.#log, 'utf8').trimEnd().split('\n').slice(-2).join(' | ').slice(0, 1500);
  }

  /** Reads what the agent has logged since, and counts what happened. */
  readLog(): void {
    const { story } = this.#world;
    const bytes = fs.readFileSync(this.#log).subarray(this.#logRead);
    const whole = bytes.lastIndexOf('\n') + 1;
    this.#logRead += whole;
    for (const text of bytes.toString('utf8', 0, whole).split('\n')) {
      if (text.includes('"code":"INTERNAL"')) story.violate(`${this.name}: ${text.slice(0, 2000)}`);
      const result = /"trigger":"(recovery|repair|rollback)","outcome":"([a-z-]+)"/.exec(text);
      if (result === null || !text.includes('"msg":"cycle ended"')) continue;
      const name = { recovery: 'recoveries', repair: 'repairs', rollback: 'rollbacks' }[result[1] ?? ''];
      story.count(name ?? 'other');
      story.count(`${name}: ${result[2]}`);
      this.#unrestAtMs = performance.now();
    }
  }

  /** The swap is in flight: a crash now is what recovery is for. @returns false when none came in time */
  async untilSwap(timeoutMs: number): Promise<boolean> {
    const journal = join(this.state, 'journal.json');
    const untilMs = performance.now() + timeoutMs;
    while (performance.now() < untilMs) {
      if (fs.existsSync(journal)) return true;
      await sleep(2);
    }
    return false;
  }

  // Those who use the policy

  startUsers(): void {
    for (const kind of ['reader', 'native', 'daemon'] as const) this.startUser(kind);
  }

  startUser(kind: UserSettings['kind']): void {
    const { processes, knownFile } = this.#world;
    const settings: UserSettings = {
      kind,
      policy: this.policy,
      known: knownFile,
      graceMs,
      socket: join(this.run, 'workers/portal.sock'),
      pidFile: join(this.#dir, 'daemon.pid'),
    };
    const user = processes.start({
      name: `${kind} of ${this.name}`,
      argv: [process.execPath, userScript, JSON.stringify(settings)],
      stderrFile: join(this.#dir, `${kind}.log`),
      onLine: (line) => this.#hear(JSON.parse(line) as UserLine),
    });
    this.#users.set(kind, user);
  }

  async killUser(kind: 'native' | 'daemon'): Promise<void> {
    const user = this.#users.get(kind);
    user?.kill('SIGKILL');
    await user?.ended;
    this.#unrestAtMs = performance.now();
    this.startUser(kind);
  }

  requireUsers(): void {
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
    } else if (line.type === 'violation') story.violate(`${this.name}: ${line.text}`);
    else this.#judgeLower(line);
  }

  #judgeLower({ bundle, from, to }: Extract<UserLine, { type: 'lower' }>): void {
    const { story, repository } = this.#world;
    const nowMs = performance.now();
    const left = repository.release(bundle, from);
    const isAcknowledged = (this.#floors.get(bundle) ?? 0) > to;
    const reasons = [
      left?.withdrawn === true && 'withdrawn',
      nowMs < this.#rollbackUntilMs && 'rollback by hand',
      this.faults.has('damage') && 'damage',
      !isAcknowledged && left?.kind === 'nacked' && 'nack',
      !isAcknowledged && nowMs - this.#unrestAtMs < unrestMs && 'not acknowledged, after unrest',
    ].filter((reason) => reason !== false);
    const what = `${this.name}: ${bundle} went from ${from} to ${to}`;
    if (reasons.length === 0) story.violate(`${what} without a reason`);
    else {
      story.event(`${what}: ${reasons.join(', ')}`);
      story.count(`went to a lower serial: ${reasons[0]}`);
    }
  }

  // Commands

  /**
   * A command at work. Where an agent runs, most are asked over its socket by this process: a program that starts costs
   * more than what it asks for.
   */
  begin(...args: readonly string[]): { readonly ended: Promise<CommandRun> } {
    const isAnswered = this.agent?.isRunning() === true && !this.#world.random.once(4);
    return isAnswered ? { ended: this.#ask(args) } : this.beginProgram(...args);
  }

  /** The program itself, that may be killed. */
  beginProgram(...args: readonly string[]): {
    readonly process: SoakProcess;
    readonly ended: Promise<CommandRun>;
  } {
    const { processes, story } = this.#world;
    const startedMs = performance.now();
    const started = processes.start({
      name: `writ ${args.join(' ')} on ${this.name}`,
      argv: this.#argv(...args, '--json'),
      env: this.#env(),
      stderrFile: join(this.#dir, 'commands.log'),
    });
    const timer = setTimeout(() => {
      this.violate(`writ ${args.join(' ')} has not ended after ${commandTimeoutMs / 1000} s`);
      started.kill('SIGKILL');
    }, commandTimeoutMs);
    story.count('commands as programs');
    const ended = started.ended.then((exitCode): CommandRun => {
      clearTimeout(timer);
      return this.#heard(args, {
        exitCode,
        json: parseJson(started.stdout()),
        durationMs: performance.now() - startedMs,
      });
    });
    return { process: started, ended };
  }

  async #ask(args: readonly string[]): Promise<CommandRun> {
    const startedMs = performance.now();
    this.#world.story.count('commands over the socket');
    try {
      const json = (await askOnce(
        join(this.run, 'agent.sock'),
        requestOf(args),
        commandTimeoutMs,
      )) as unknown;
      const exitCode = (json as { exitCode?: number }).exitCode ?? 0;
      const durationMs = performance.now() - startedMs;
      return this.#heard(args, { exitCode, json: json as Record<string, unknown>, durationMs });
    } catch (error) {
      if (!isWritError(error)) throw error;
      // What the program does then, too.
      if (error.facts['reason'] === 'not-running') return this.beginProgram(...args).ended;
      if (error.code === 'INTERRUPTED') this.violate(`writ ${args.join(' ')} had no answer in time`);
      const durationMs = performance.now() - startedMs;
      return this.#heard(args, {
        exitCode: exitCodeOfKind[error.kind],
        json: { ...error.toJSON() },
        durationMs,
      });
    }
  }

  #heard(args: readonly string[], run: CommandRun): CommandRun {
    const { exitCode, json, durationMs } = run;
    const what = `${this.name}: writ ${args.join(' ')}`;
    this.#world.story.event(`${what}: ${exitCode} ${summary(json)} in ${Math.round(durationMs)} ms`);
    const text = JSON.stringify(json) ?? '';
    if (text.includes('"INTERNAL"')) this.#world.story.violate(`${what}: ${text.slice(0, 2000)}`);
    return run;
  }

  async writ(...args: readonly string[]): Promise<CommandRun> {
    const run = await this.begin(...args).ended;
    if (args[0] === 'pull') this.acknowledge(run);
    return run;
  }

  /** What a pull has said holds from now on. */
  acknowledge({ exitCode, json, durationMs }: CommandRun): void {
    const { story, repository } = this.#world;
    story.count('pulls');
    story.count(`pulls that ended with ${exitCode ?? 'a kill'}`);
    if (exitCode !== null && ![0, 1, 3, 4, 5, 6, 8].includes(exitCode))
      story.violate(`${this.name}: a pull ended with ${exitCode}: ${JSON.stringify(json)}`);
    if (exitCode !== 0 || json === undefined) return;
    const { bundles = [], outcome } = json as Partial<CycleResult>;
    if (outcome === 'activated') this.#activationsMs.push(durationMs);
    if (bundles.length === 0) story.violate(`${this.name}: a pull without bundles ended with 0`);
    for (const one of bundles) {
      const serial = one.outcome === 'activated' ? one.toSerial : one.fromSerial;
      if (serial === undefined) continue;
      if (repository.release(one.bundle, serial)?.kind === 'good') this.#floors.set(one.bundle, serial);
    }
  }

  /** @returns about how long a pull that activates takes */
  usualPullMs(): number {
    const sorted = this.#activationsMs.slice(-9).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 1500;
  }

  /** A rollback by hand begins: what was acknowledged is left on purpose. */
  expectRollback(): void {
    this.#floors.clear();
    this.#rollbackUntilMs = performance.now() + commandTimeoutMs;
  }

  rollbackIsOver(): void {
    // The reader may see it a little later.
    this.#rollbackUntilMs = performance.now() + 3000;
  }

  /** Damage may be answered by the generation before: nothing is acknowledged any more. */
  forgetAcknowledged(): void {
    this.#floors.clear();
  }

  noteUnrest(): void {
    this.#unrestAtMs = performance.now();
  }

  violate(text: string): void {
    this.#world.story.violate(`${this.name}: ${text}`);
  }

  /** Nothing was found: what is on its own disk may go. */
  unmountDisk(): void {
    if (this.ownDisk) spawnSync('umount', ['-l', this.disk]);
  }

  /** What lies on a file system that is about to go is kept beside it. */
  keepDisk(): void {
    if (!this.ownDisk) return;
    fs.cpSync(this.disk, `${this.disk}-kept`, { recursive: true, verbatimSymlinks: true });
  }

  // Looking

  read(): PolicyRead {
    return readPolicy(this.policy, { known: this.known, graceMs });
  }

  /** Everything that must hold at any moment. */
  look(): PolicyRead {
    const { story, repository } = this.#world;
    this.readLog();
    this.requireUsers();
    this.#measureAgent();
    const read = this.read();
    for (const text of read.violations) story.violate(`${this.name}: ${text}`);
    for (const { bundle, serial, tainted } of read.bundles) {
      const floor = this.#floors.get(bundle);
      if (floor === undefined || tainted || serial >= floor) continue;
      if (repository.release(bundle, floor)?.withdrawn === true) this.#floors.delete(bundle);
      else story.violate(`${this.name}: ${bundle} is at ${serial}, and a pull has acknowledged ${floor}`);
    }
    return read;
  }

  #measureAgent(): void {
    const { story } = this.#world;
    if (this.agent?.isRunning() !== true) return;
    try {
      const status = fs.readFileSync(`/proc/${this.agent.pid}/status`, 'utf8');
      const kilobytes = Number(/VmRSS:\s+([0-9]+)/.exec(status)?.[1] ?? 0);
      story.measure('resident memory of an agent in MB', kilobytes / 1000);
      story.measure('descriptors of an agent', fs.readdirSync(`/proc/${this.agent.pid}/fd`).length);
    } catch {
      // It has ended meanwhile.
    }
  }

  #argv(...args: readonly string[]): [string, ...string[]] {
    return [process.execPath, '--import', clockModule, entry, ...args, '--config', this.configPath];
  }

  #env(): Record<string, string> {
    return { WRIT_SOAK_CLOCK: this.clockFile };
  }
}
