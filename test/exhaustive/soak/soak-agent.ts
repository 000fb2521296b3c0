// The agent of a host in a soak, as a real process: started, killed, started again when it may have ended, and what it
// has logged and how large it has become. Judges only the end of the process and INTERNAL in its log.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SoakProcess } from './soak-processes.js';
import type { HostPlaces } from './world/host-places.js';
import type { SoakWorld } from './world/soak-world.js';

const startTimeoutMs = 60_000;

export interface AgentOf {
  readonly world: SoakWorld;
  readonly places: HostPlaces;
  /** The host's disk is made to fail: then an agent may end by itself. */
  hasBrokenDisk(): boolean;
  /** Something has happened after which what nobody was told may go back. */
  noteUnrest(): void;
}

export class SoakAgent {
  process: SoakProcess | undefined;
  /** It was ended on purpose, or is about to be. */
  mayEnd = false;
  readonly #of: AgentOf;
  #logRead = 0;

  constructor(of: AgentOf) {
    this.#of = of;
  }

  isRunning(): boolean {
    return this.process?.isRunning() === true;
  }

  async start(): Promise<void> {
    const { processes, story } = this.#of.world;
    this.mayEnd = false;
    const from = fs.statSync(this.#of.places.log).size;
    const agent = processes.start({
      name: `agent of ${this.#of.places.name}`,
      argv: this.#of.places.argv('agent'),
      env: this.#of.places.env(),
      stderrFile: this.#of.places.log,
    });
    this.process = agent;
    story.count('starts of an agent');
    const deadlineMs = performance.now() + startTimeoutMs;
    while (agent.isRunning() && !this.#logHas('"state":"run"', from)) {
      if (performance.now() > deadlineMs) {
        story.violate(`${this.#of.places.name}: the agent is not ready after ${startTimeoutMs / 1000} s`);
        return;
      }
      await sleep(20);
    }
  }

  kill(): void {
    if (!this.isRunning()) return;
    this.mayEnd = true;
    this.process?.kill('SIGKILL');
    this.#of.noteUnrest();
    this.#of.world.story.count('kills');
    this.#of.world.story.count('kills of an agent');
  }

  /** The agent runs afterwards, or it is said why it may not. */
  async ensure(): Promise<void> {
    const { story } = this.#of.world;
    for (let tries = 0; tries < 20; tries++) {
      // One that was killed a moment ago still looks as if it ran.
      if (this.isRunning() && !this.mayEnd) return;
      const exitCode = await this.process?.ended;
      const wasAsked = this.mayEnd || this.process === undefined;
      // 6: a pull that was asked for by hand holds the lock; 1: nothing can be written.
      const mayEnd = wasAsked || exitCode === 6 || (exitCode === 1 && this.#of.hasBrokenDisk());
      if (!mayEnd)
        story.violate(
          `${this.#of.places.name}: the agent ended by itself with ${exitCode}: ${this.#logEnd()}`,
        );
      if (!wasAsked) {
        story.count(`agent ended by itself with ${exitCode}, excused`);
        await sleep(500);
      }
      if (story.violations.length > 0) return;
      await this.start();
    }
    if (!this.#of.hasBrokenDisk())
      story.violate(`${this.#of.places.name}: the agent does not stay up: ${this.#logEnd()}`);
  }

  #logHas(text: string, from: number): boolean {
    return fs.readFileSync(this.#of.places.log).subarray(from).includes(text);
  }

  #logEnd(): string {
    return fs
      .readFileSync(this.#of.places.log, 'utf8')
      .trimEnd()
      .split('\n')
      .slice(-2)
      .join(' | ')
      .slice(0, 1500);
  }

  /** Reads what the agent has logged since, and counts what happened. */
  readLog(): void {
    const { story } = this.#of.world;
    const bytes = fs.readFileSync(this.#of.places.log).subarray(this.#logRead);
    const whole = bytes.lastIndexOf('\n') + 1;
    this.#logRead += whole;
    for (const text of bytes.toString('utf8', 0, whole).split('\n')) {
      if (text.includes('"code":"INTERNAL"'))
        story.violate(`${this.#of.places.name}: ${text.slice(0, 2000)}`);
      const result = /"trigger":"(recovery|repair|rollback)","outcome":"([a-z-]+)"/.exec(text);
      if (result === null || !text.includes('"msg":"cycle ended"')) continue;
      const name = { recovery: 'recoveries', repair: 'repairs', rollback: 'rollbacks' }[result[1] ?? ''];
      story.count(name ?? 'other');
      story.count(`${name}: ${result[2]}`);
      this.#of.noteUnrest();
    }
  }

  /** The swap is in flight: a crash now is what recovery is for. @returns false when none came in time */
  async untilSwap(timeoutMs: number): Promise<boolean> {
    const journal = join(this.#of.places.state, 'journal.json');
    const untilMs = performance.now() + timeoutMs;
    while (performance.now() < untilMs) {
      if (fs.existsSync(journal)) return true;
      await sleep(2);
    }
    return false;
  }

  measure(): void {
    const { story } = this.#of.world;
    if (this.process === undefined || !this.isRunning()) return;
    try {
      const status = fs.readFileSync(`/proc/${this.process.pid}/status`, 'utf8');
      const kilobytes = Number(/VmRSS:\s+([0-9]+)/.exec(status)?.[1] ?? 0);
      story.measure('resident memory of an agent in MB', kilobytes / 1000);
      story.measure('descriptors of an agent', fs.readdirSync(`/proc/${this.process.pid}/fd`).length);
    } catch {
      // It has ended meanwhile.
    }
  }
}
