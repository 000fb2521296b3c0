// The agent while it runs: recovery first, then polls and requests until it is told to end. Owns the order of
// things and the states init, run, shutdown, stop; every decision is elsewhere.
import type { AgentState, ControlAnswer, ControlRequest, StatusReport } from '../core/control-protocol.js';
import type { CycleResult, Problem } from '../core/cycle-report.js';
import { toWritError, WritError } from '../core/errors.js';
import { openControlSocket } from './control-socket.js';
import { type CycleRunner, createCycleRunner } from './cycle-runner.js';
import { problemOf } from './cycle-story.js';
import { freshnessAfter } from './freshness.js';
import { activeGenerationNumber, readActive } from './generations.js';
import { readHistory } from './history.js';
import type { Host } from './host.js';
import { loadConfig } from './load-config.js';
import { closeHost, type HostOptions, openHost, requireSamePlaces } from './open-host.js';
import { cronTimeAfterNow, runPollLoop } from './poll-loop.js';
import { createRecorder, type Recorder } from './record-cycle.js';
import { retryRefusals, startHost } from './recover-host.js';
import { resume } from './resume.js';
import { newCycleId, runRollback, runSync } from './run-cycle.js';
import { dueDelayMs, settleDueApart } from './settle-due.js';
import { readStatusFile, writeStatusFile } from './status-file.js';
import { statusReport } from './status-report.js';
import { announceActive } from './worker-groups.js';

export interface AgentOptions extends HostOptions {
  readonly configPath: string;
  readonly random01: () => number;
  /** Ends the agent in good order. */
  readonly stop: AbortSignal;
  /** Calls back at each SIGHUP; returns how to stop listening. */
  readonly onReload: (reload: () => void) => () => void;
  /** Told at each state, `run` when a verified policy is served or awaited. */
  readonly onState?: (state: AgentState) => void;
}

/** One agent, from recovery to its end; made by `runAgent`, which holds the lock. */
export class RunningAgent {
  readonly #options: AgentOptions;
  readonly #runner: CycleRunner;
  readonly #recorder: Recorder;
  #host: Host;
  #state: AgentState = 'init';
  #last: CycleResult | undefined;
  #freshness: StatusReport['freshness'] = { state: 'stale' };
  #nextPollAtMs: number | undefined;
  #problems: Problem[] = [];
  /** Aborted to end the poll loop of the present configuration. */
  #polling: AbortController = new AbortController();

  constructor(options: AgentOptions, host: Host) {
    this.#options = options;
    this.#host = host;
    this.#recorder = createRecorder();
    this.#runner = createCycleRunner(async (run) => {
      const end = await runSync(this.#host, { ...run, signal: this.#options.stop });
      this.#note(end.result);
      this.#recorder.record(this.#host, end, run.by === undefined ? {} : { by: run.by });
      this.#publishStatus();
      return end.result;
    });
  }

  async run(): Promise<void> {
    const { stop, log } = this.#options;
    await this.#recover();
    const socket = await openControlSocket({
      path: this.#host.paths.socket,
      version: this.#options.version,
      log,
      handle: (request, send) => this.#handle(request, send),
    });
    log.info({ socket: this.#host.paths.socket }, 'control socket open');
    const stopReloads = this.#options.onReload(() => this.#reload());
    this.#enter('run');
    try {
      await Promise.all([this.#pollUntilStopped(stop), this.#settleUntilStopped(stop)]);
    } finally {
      this.#enter('shutdown');
      stopReloads();
      await this.#runner.idle();
      await socket.close();
      this.#enter('stop');
      await closeHost(this.#host);
    }
  }

  #enter(state: AgentState): void {
    this.#state = state;
    this.#options.log.info({ state }, 'state');
    this.#publishStatus();
    this.#options.onState?.(state);
  }

  async #recover(): Promise<void> {
    const host = this.#host;
    const { recovered, damage } = await startHost(host, { cycle: newCycleId(), signal: this.#options.stop });
    if (recovered !== undefined) {
      this.#last = recovered.result;
      this.#recorder.record(host, recovered, {});
    }
    if (damage !== undefined) this.#problems.push(problemOf(damage));
    host.log.info({ generation: activeGenerationNumber(host.paths) }, 'host recovered and verified');
    this.#announce();
  }

  #announce(): void {
    const active = readActive(this.#host.paths);
    announceActive(this.#host.groups, active && { generation: active.number, path: active.path });
  }

  async #pollUntilStopped(stop: AbortSignal): Promise<void> {
    let trigger: 'start' | 'poll' = 'start';
    while (!stop.aborted) {
      this.#polling = new AbortController();
      const host = this.#host;
      const lastSuccessMs = readStatusFile(host.paths)?.freshness.lastContactMs;
      const pollOptions = {
        poll: host.config.poll,
        hostId: host.config.host.id,
        clock: host.clock,
        random01: this.#options.random01,
        nextCronTime: cronTimeAfterNow,
        retryAfterUntilMs: () => host.ledger.read().retryAfterUntilMs,
        anythingActive: activeGenerationNumber(host.paths) === undefined ? 'no' : 'yes',
        onScheduled: (atMs: number) => {
          this.#nextPollAtMs = atMs;
        },
        onPoll: async () => {
          await this.#runner.pull({ trigger });
          trigger = 'poll';
          return this.#freshness.state === 'stale' ? 'failed' : 'reached';
        },
        ...(lastSuccessMs === undefined ? {} : { lastSuccessMs }),
      } as const;
      await runPollLoop(pollOptions, AbortSignal.any([stop, this.#polling.signal]));
    }
  }

  /** Workers that could not be told stay due: they are told apart from the cycles, later and later. */
  async #settleUntilStopped(stop: AbortSignal): Promise<void> {
    for (let tries = 0; !stop.aborted; ) {
      await this.#options.clock.sleep(dueDelayMs(tries), stop);
      if (stop.aborted) return;
      const settled = await this.#runner.exclusive(() =>
        settleDueApart(this.#host, { cycle: newCycleId(), signal: stop }),
      );
      tries = settled === 'still-due' ? tries + 1 : 0;
      if (settled === 'told') this.#publishStatus();
    }
  }

  /** What a result says about the way to the server. */
  #note(result: CycleResult): void {
    this.#last = result;
    this.#freshness = freshnessAfter(this.#freshness, result, this.#options.clock.nowMs());
    if (result.changed) this.#problems = [];
  }

  async #handle(request: ControlRequest, send: (answer: ControlAnswer) => void): Promise<void> {
    const changes = request.type === 'pull' || request.type === 'rollback' || request.type === 'resume';
    if (changes && this.#options.stop.aborted)
      throw new WritError('AGENT_STOPPING', 'the agent is shutting down');
    switch (request.type) {
      case 'pull': {
        const trigger = request.force ? 'force' : 'pull';
        return send(await this.#runner.pull({ trigger, by: request.by, onEvent: send }));
      }
      case 'status':
        return send(this.#status());
      case 'history':
        for (const entry of readHistory(this.#host.paths, request)) send(entry);
        return send({ type: 'end' });
      case 'rollback':
        return send(await this.#runner.exclusive(() => this.#rollback(request, send)));
      case 'resume':
        return send(await this.#runner.exclusive(async () => resume(this.#host)));
    }
  }

  async #rollback(
    request: Extract<ControlRequest, { type: 'rollback' }>,
    onEvent: (answer: ControlAnswer) => void,
  ): Promise<CycleResult> {
    const end = await runRollback(this.#host, { ...request, signal: this.#options.stop, onEvent });
    this.#last = end.result;
    const { by, reason } = request;
    this.#recorder.record(this.#host, end, { by, ...(reason === undefined ? {} : { reason }) });
    this.#publishStatus();
    return end.result;
  }

  #status(): StatusReport {
    return statusReport(this.#host, {
      version: this.#options.version,
      state: this.#state,
      freshness: this.#freshness,
      problems: this.#problems,
      ...(this.#last ? { last: this.#last } : {}),
      ...(this.#nextPollAtMs === undefined ? {} : { nextPollAtMs: this.#nextPollAtMs }),
    });
  }

  #publishStatus(): void {
    writeStatusFile(this.#host, this.#status());
  }

  /** A configuration with a mistake changes nothing: the agent goes on with the one it has, and says so. */
  #reload(): void {
    const reload = async (): Promise<void> => {
      try {
        await this.#replaceHost();
        this.#polling.abort();
        void this.#runner.pull({ trigger: 'reload' });
      } catch (error) {
        const problem = toWritError(error);
        this.#options.log.error({ err: problem }, 'the configuration was not reloaded; the old one stays');
        this.#problems = [...this.#problems.filter((one) => one.code !== problem.code), problemOf(problem)];
        this.#publishStatus();
      }
    };
    void this.#runner.exclusive(reload);
  }

  async #replaceHost(): Promise<void> {
    const { config } = loadConfig(this.#options.configPath);
    const old = this.#host;
    requireSamePlaces(old.config, config);
    await closeHost(old);
    try {
      this.#host = await openHost(config, this.#options);
    } catch (error) {
      this.#host = await openHost(old.config, this.#options);
      throw error;
    } finally {
      this.#announce();
    }
    retryRefusals(this.#host);
    this.#problems = [];
    this.#options.log.info('configuration reloaded');
  }
}
