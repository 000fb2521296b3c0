// The commands of a soak host, sent to its agent over the socket or run as programs, each with a timeout and a line in the
// event log. The caller records what a pull acknowledges.
import { join } from 'node:path';
import { exitCodeOfKind, isWritError } from '../../../../src/core/errors.js';
import type { SoakAgent } from '../soak-agent.js';
import { askOnce, type CommandRun, parseJson, requestOf, summary } from '../soak-commands.js';
import type { SoakProcess } from '../soak-processes.js';
import type { HostFiles } from './host-files.js';
import type { SoakWorld } from './soak-world.js';

/** A command that takes longer has hung, because connections to the server time out long before. */
export const commandTimeoutMs = 150_000;

export class HostCommands {
  readonly #world: SoakWorld;
  readonly #places: HostFiles;
  readonly #agent: SoakAgent;

  constructor(world: SoakWorld, places: HostFiles, agent: SoakAgent) {
    this.#world = world;
    this.#places = places;
    this.#agent = agent;
  }

  /**
   * Starts a command. When an agent runs, this process sends most requests over its socket, because starting a program
   * costs more than the request.
   */
  begin(...args: readonly string[]): { readonly ended: Promise<CommandRun> } {
    const isAnswered = this.#agent.isRunning() && !this.#world.random.once(4);
    return isAnswered ? { ended: this.#ask(args) } : this.beginProgram(...args);
  }

  /** Starts the command as a program, which a test may kill. */
  beginProgram(...args: readonly string[]): {
    readonly process: SoakProcess;
    readonly ended: Promise<CommandRun>;
  } {
    const { processes, log } = this.#world;
    const startedMs = performance.now();
    const started = processes.start({
      name: `writ ${args.join(' ')} on ${this.#places.name}`,
      argv: this.#places.argv(...args, '--json'),
      env: this.#places.env(),
      stderrFile: join(this.#places.directory, 'commands.log'),
    });
    const timer = setTimeout(() => {
      this.#world.log.violate(
        `${this.#places.name}: writ ${args.join(' ')} has not ended after ${commandTimeoutMs / 1000} s`,
      );
      started.kill('SIGKILL');
    }, commandTimeoutMs);
    log.count('commands as programs');
    const ended = started.ended.then((exitCode): CommandRun => {
      clearTimeout(timer);
      return this.#record(args, {
        exitCode,
        json: parseJson(started.stdout()),
        durationMs: performance.now() - startedMs,
      });
    });
    return { process: started, ended };
  }

  async #ask(args: readonly string[]): Promise<CommandRun> {
    const startedMs = performance.now();
    this.#world.log.count('commands over the socket');
    try {
      const json = (await askOnce(
        join(this.#places.run, 'agent.sock'),
        requestOf(args),
        commandTimeoutMs,
      )) as unknown;
      const exitCode = (json as { exitCode?: number }).exitCode ?? 0;
      const durationMs = performance.now() - startedMs;
      return this.#record(args, { exitCode, json: json as Record<string, unknown>, durationMs });
    } catch (error) {
      if (!isWritError(error)) throw error;
      // The program runs without an agent then, too.
      if (error.facts['reason'] === 'not-running') return this.beginProgram(...args).ended;
      if (error.code === 'INTERRUPTED')
        this.#world.log.violate(`${this.#places.name}: writ ${args.join(' ')} had no answer in time`);
      const durationMs = performance.now() - startedMs;
      return this.#record(args, {
        exitCode: exitCodeOfKind[error.kind],
        json: { ...error.toJSON() },
        durationMs,
      });
    }
  }

  #record(args: readonly string[], run: CommandRun): CommandRun {
    const { exitCode, json, durationMs } = run;
    const what = `${this.#places.name}: writ ${args.join(' ')}`;
    this.#world.log.event(`${what}: ${exitCode} ${summary(json)} in ${Math.round(durationMs)} ms`);
    const text = JSON.stringify(json) ?? '';
    if (text.includes('"INTERNAL"')) this.#world.log.violate(`${what}: ${text.slice(0, 2000)}`);
    return run;
  }
}
