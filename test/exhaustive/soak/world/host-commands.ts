// The commands of a host in a soak: asked of its agent over the socket or run as programs, with a bound, and each with
// its line in the story. What a pull acknowledges is its caller's to note.
import { join } from 'node:path';
import { exitCodeOfKind, isWritError } from '../../../../src/core/errors.js';
import type { SoakAgent } from '../soak-agent.js';
import { askOnce, type CommandRun, parseJson, requestOf, summary } from '../soak-commands.js';
import type { SoakProcess } from '../soak-processes.js';
import type { HostPlaces } from './host-places.js';
import type { SoakWorld } from './soak-world.js';

/** A command that takes longer has hung: the ways to the server give up long before. */
export const commandTimeoutMs = 150_000;

export class HostCommands {
  readonly #world: SoakWorld;
  readonly #places: HostPlaces;
  readonly #agent: SoakAgent;

  constructor(world: SoakWorld, places: HostPlaces, agent: SoakAgent) {
    this.#world = world;
    this.#places = places;
    this.#agent = agent;
  }

  /**
   * A command at work. Where an agent runs, most are asked over its socket by this process: a program that starts costs
   * more than what it asks for.
   */
  begin(...args: readonly string[]): { readonly ended: Promise<CommandRun> } {
    const isAnswered = this.#agent.isRunning() && !this.#world.random.once(4);
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
      name: `writ ${args.join(' ')} on ${this.#places.name}`,
      argv: this.#places.argv(...args, '--json'),
      env: this.#places.env(),
      stderrFile: join(this.#places.directory, 'commands.log'),
    });
    const timer = setTimeout(() => {
      this.#world.story.violate(
        `${this.#places.name}: writ ${args.join(' ')} has not ended after ${commandTimeoutMs / 1000} s`,
      );
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
        join(this.#places.run, 'agent.sock'),
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
      if (error.code === 'INTERRUPTED')
        this.#world.story.violate(`${this.#places.name}: writ ${args.join(' ')} had no answer in time`);
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
    const what = `${this.#places.name}: writ ${args.join(' ')}`;
    this.#world.story.event(`${what}: ${exitCode} ${summary(json)} in ${Math.round(durationMs)} ms`);
    const text = JSON.stringify(json) ?? '';
    if (text.includes('"INTERNAL"')) this.#world.story.violate(`${what}: ${text.slice(0, 2000)}`);
    return run;
  }
}
