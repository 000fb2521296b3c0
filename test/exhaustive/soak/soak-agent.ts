// The agent process of a soak host: starts, kills and restarts it, reads its log and measures its size. Reports as violations
// only an unexpected exit and INTERNAL in the log.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SoakProcess } from './soak-processes.js';
import type { HostFiles } from './world/host-files.js';
import type { SoakWorld } from './world/soak-world.js';

const startTimeoutMs = 60_000;

export interface AgentOf {
  readonly world: SoakWorld;
  readonly places: HostFiles;
  /** Whether the host's disk fails on purpose: an agent may then exit by itself. */
  hasBrokenDisk(): boolean;
  /** Notes a fault after which a release that no pull has acknowledged may be replaced by an older one. */
  noteUnrest(): void;
}

export class SoakAgent {
  process: SoakProcess | undefined;
  /** True when the driver has ended the agent, or is about to. */
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
    const { processes, log } = this.#of.world;
    this.mayEnd = false;
    const from = fs.statSync(this.#of.places.log).size;
    const agent = processes.start({
      name: `agent of ${this.#of.places.name}`,
      argv: this.#of.places.argv('agent'),
      env: this.#of.places.env(),
      stderrFile: this.#of.places.log,
    });
    this.process = agent;
    log.count('starts of an agent');
    const deadlineMs = performance.now() + startTimeoutMs;
    while (agent.isRunning() && !this.#logHas('"state":"run"', from)) {
      if (performance.now() > deadlineMs) {
        log.violate(`${this.#of.places.name}: the agent is not ready after ${startTimeoutMs / 1000} s`);
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
    this.#of.world.log.count('kills');
    this.#of.world.log.count('kills of an agent');
  }

  /** Restarts the agent until it runs. An exit without an excuse is a violation. */
  async ensure(): Promise<void> {
    const { log } = this.#of.world;
    for (let tries = 0; tries < 20; tries++) {
      // A process that was killed just now still counts as running.
      if (this.isRunning() && !this.mayEnd) return;
      const exitCode = await this.process?.ended;
      const wasAsked = this.mayEnd || this.process === undefined;
      // Exit code 6: a pull of an operator holds the job lock. 1: the disk cannot be written.
      const mayEnd = wasAsked || exitCode === 6 || (exitCode === 1 && this.#of.hasBrokenDisk());
      if (!mayEnd)
        log.violate(`${this.#of.places.name}: the agent ended by itself with ${exitCode}: ${this.#logEnd()}`);
      if (!wasAsked) {
        log.count(`agent ended by itself with ${exitCode}, excused`);
        await sleep(500);
      }
      if (log.violations.length > 0) return;
      await this.start();
    }
    if (!this.#of.hasBrokenDisk())
      log.violate(`${this.#of.places.name}: the agent does not keep running: ${this.#logEnd()}`);
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

  /** Reads new lines of the log and counts the events in them. */
  readLog(): void {
    const { log } = this.#of.world;
    const bytes = fs.readFileSync(this.#of.places.log).subarray(this.#logRead);
    const completeBytes = bytes.lastIndexOf('\n') + 1;
    this.#logRead += completeBytes;
    for (const text of bytes.toString('utf8', 0, completeBytes).split('\n')) {
      if (text.includes('"code":"INTERNAL"')) log.violate(`${this.#of.places.name}: ${text.slice(0, 2000)}`);
      const result = /"trigger":"(recovery|repair|rollback)","outcome":"([a-z-]+)"/.exec(text);
      if (result === null || !text.includes('"msg":"cycle ended"')) continue;
      const name = { recovery: 'recoveries', repair: 'repairs', rollback: 'rollbacks' }[result[1] ?? ''];
      log.count(name ?? 'other');
      log.count(`${name}: ${result[2]}`);
      this.#of.noteUnrest();
    }
  }

  /** Waits until the journal of a swap exists, so that a crash needs recovery. @returns false after the timeout */
  async waitForSwap(timeoutMs: number): Promise<boolean> {
    const journal = join(this.#of.places.state, 'journal.json');
    const untilMs = performance.now() + timeoutMs;
    while (performance.now() < untilMs) {
      if (fs.existsSync(journal)) return true;
      await sleep(2);
    }
    return false;
  }

  measure(): void {
    const { log } = this.#of.world;
    if (this.process === undefined || !this.isRunning()) return;
    try {
      const status = fs.readFileSync(`/proc/${this.process.pid}/status`, 'utf8');
      const kilobytes = Number(/VmRSS:\s+([0-9]+)/.exec(status)?.[1] ?? 0);
      log.measure('resident memory of an agent in MB', kilobytes / 1000);
      log.measure('descriptors of an agent', fs.readdirSync(`/proc/${this.process.pid}/fd`).length);
    } catch {
      // The process has ended meanwhile.
    }
  }
}
