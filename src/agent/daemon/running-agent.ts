// The agent while it runs: recovery first, then polls and requests until it is told to end. Owns the order of
// things and the states init, run, shutdown, stop; every decision is elsewhere.
import type { CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { toWritError, WritError } from '../../core/errors.js';
import type { AgentState, ControlAnswer, StatusReport } from '../../core/protocol/control-protocol.js';
import type { HeldStatus } from '../../core/status/status.js';
import { readBootId } from '../../platform/process/boot-id.js';
import { loadConfig } from '../config/load-config.js';
import { answerRequest, type RequestDoors, type RequestOf } from '../control/answer-request.js';
import { openControlSocket } from '../control/control-socket.js';
import { isWaitOver, openOrders } from '../control/operator-requests.js';
import { pullInTurn } from '../control/wait-for-turn.js';
import { afterExit } from '../cycle/after-exit-rules.js';
import { type Collector, createCollector, heldNow } from '../cycle/collector.js';
import { type CycleRunner, createCycleRunner, pullUnlessStopping } from '../cycle/cycle-runner.js';
import { leaveWhenRefused } from '../cycle/late-cycle.js';
import { rollBack } from '../cycle/rollback.js';
import { runSync } from '../cycle/sync-cycle.js';
import { createUntrustedExit, type UntrustedExit } from '../cycle/untrusted-exit.js';
import { type ContactKeeper, keepContact } from '../freshness/contact-memory.js';
import { createStaleWatch, type StaleWatch } from '../freshness/stale-watch.js';
import { activeGenerationNumber } from '../generations/generations.js';
import type { Look } from '../integrity/scrub.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { readHistory } from '../job/history.js';
import { newCycleId } from '../job/progress.js';
import { createRecorder, type Recorder } from '../job/record-cycle.js';
import { allOf, type Observers } from '../report/observer.js';
import { createStatusFeed, type StatusFeed } from '../report/status-feed.js';
import { readStatusFile, writeStatusFile } from '../report/status-file.js';
import { statusReport } from '../report/status-report.js';
import { announceCurrent, closeHost, replaceHost } from '../startup/open-host.js';
import { startHost } from '../startup/start-host.js';
import type { Host } from '../state/host.js';
import type { AgentOptions } from './agent-options.js';
import { createPoller, type Poller } from './poller.js';
import { createSettler, runSettleLoop, type Settler } from './reconcile-loop.js';
import { createScrubber, type Scrubber } from './scrub-loop.js';

/** One agent, from recovery to its end; made by `runAgent`, which holds the lock. */
export class RunningAgent {
  readonly #options: AgentOptions;
  readonly #runner: CycleRunner;
  readonly #recorder: Recorder = createRecorder();
  #host: Host;
  #state: AgentState = 'init';
  #last: CycleResult | undefined;
  readonly #contact: ContactKeeper;
  readonly #staleWatch: StaleWatch;
  readonly #scrubber: Scrubber;
  readonly #collector: Collector = createCollector();
  readonly #settler: Settler = createSettler({
    onRefused: leaveWhenRefused((end, reason) => this.#note(end, { by: 'writ', reason })),
  });
  readonly #untrustedExit: UntrustedExit = createUntrustedExit();
  readonly #poller: Poller;
  /** What is wrong outside of cycles, until it is mended: active trees, due loaders, a reload that failed. */
  readonly #problems = new Map<'damage' | 'loader' | 'reload', Problem | undefined>();
  readonly #observers: Observers;
  readonly #feed: StatusFeed;
  readonly #doors: RequestDoors = {
    pull: (request) => pullInTurn(this.#runner, request, this.#options),
    reload: (request) => this.#reload().then(() => this.#runner.pull(request)),
    status: async () => this.#status(await heldNow(this.#host)),
    watch: (watcher) => this.#feed.watch(watcher),
    history: (request) => readHistory(this.#host.paths, request),
    rollback: (request, onEvent) => this.#runner.exclusive(() => this.#rollback(request, onEvent)),
    verify: (request, onEvent) => this.#scrubber.verify(request, onEvent),
    ...openOrders({
      host: () => this.#host,
      exclusive: (job) => this.#runner.exclusive(job),
      admit: () => this.#refuseWhenStopping(),
      onChanged: () => this.#publishStatus(),
    }),
  };

  constructor(options: AgentOptions, host: Host) {
    this.#options = options;
    this.#host = host;
    this.#feed = createStatusFeed({ clock: options.clock, now: () => this.#status() });
    this.#observers = allOf([this.#feed.observer, ...(options.observers ?? [])]);
    // As it was at the last end: the first poll says what has become of it.
    this.#contact = keepContact(readStatusFile(host.paths), options.clock);
    this.#staleWatch = createStaleWatch(readBootId());
    this.#scrubber = createScrubber({
      host: () => this.#host,
      exclusive: (job) => this.#runner.exclusive(job),
      onLook: (look) => this.#noteLook(look),
      stop: options.stop,
    });
    this.#poller = createPoller({
      host: () => this.#host,
      contact: this.#contact,
      anythingActive: () => (this.#status().generation === undefined ? 'no' : 'yes'),
      random01: options.random01,
      stop: options.stop,
    });
    this.#runner = createCycleRunner(
      async (run) => {
        // Asked for before the end was: who waits is told, and no server is asked in vain.
        this.#refuseWhenStopping();
        const end = await runSync(this.#host, { ...run, signal: this.#options.stop });
        this.#contact.note(end.refresh);
        this.#note(end, run.by === undefined ? {} : { by: run.by });
        const left = await this.#untrustedExit.afterCycle(this.#host, end, this.#options.stop);
        if (left !== undefined) this.#note(left, { by: 'writ', reason: 'UNTRUSTED_ACTIVE' });
        // Apart, so that who waits for the cycle does not wait for an operator's command.
        void this.#runner.exclusive(() => this.#watchAge());
        return afterExit(end.result, left?.result);
      },
      (work) => this.#observers.onWork(work, this.#host.config),
    );
  }

  async run(): Promise<void> {
    const { stop, log } = this.#options;
    // From the beginning, or a SIGHUP while the host recovers would end the process; it waits for its turn.
    const pull = () => pullUnlessStopping(this.#runner, 'reload');
    const stopReloads = this.#options.onReload(() => void this.#reload().then(pull, () => undefined));
    try {
      await this.#runner.exclusive(() => this.#recover());
      const socket = await openControlSocket({
        path: this.#host.paths.socket,
        version: this.#options.version,
        log,
        durable: this.#host.durable,
        handle: (request, send, gone) => answerRequest(this.#doors, request, send, gone),
      });
      log.info({ socket: this.#host.paths.socket }, 'control socket open');
      this.#enter('run');
      try {
        await Promise.all([
          this.#poller.run(this.#runner),
          this.#settleUntilStopped(stop),
          this.#scrubber.run(),
        ]);
      } finally {
        this.#enter('shutdown');
        await this.#runner.idle();
        await socket.close();
        this.#enter('stop');
      }
    } finally {
      stopReloads();
      await this.#runner.idle();
      await closeHost(this.#host);
    }
  }

  #enter(state: AgentState): void {
    this.#state = state;
    this.#options.log.info({ state }, 'state');
    this.#publishStatus();
    this.#observers.onState(state);
  }

  async #recover(): Promise<void> {
    const host = this.#host;
    const starting = startHost(host, { cycle: newCycleId(), signal: this.#options.stop });
    // Not before: how the last agent ended is in the status that this one replaces.
    this.#enter('init');
    const { recovered, repaired, damage, notLoaded } = await starting;
    if (recovered !== undefined) this.#note(recovered, {});
    this.#last = repaired?.result ?? this.#last;
    this.#problems.set('damage', damage && problemOf(damage)).set('loader', notLoaded);
    host.log.info({ generation: activeGenerationNumber(host.paths) }, 'host recovered and verified');
    announceCurrent(host);
  }

  /** Between polls: who could not be told is told, old generations are collected, and policy grows old too. */
  #settleUntilStopped(stop: AbortSignal): Promise<void> {
    const { exclusive } = this.#runner;
    const { clock } = this.#options;
    return runSettleLoop({
      ...{ clock, stop },
      before: () => exclusive(() => this.#collector.collectWhenDue(this.#host, () => this.#publishStatus())),
      turn: async () => {
        await exclusive(() => this.#settle(stop));
        if (isWaitOver(this.#host)) await pullUnlessStopping(this.#runner, 'poll');
      },
      after: () => exclusive(() => this.#watchAge()),
    });
  }

  async #settle(signal: AbortSignal): Promise<void> {
    const turn = await this.#settler.turn(this.#host, { signal, loader: this.#problems.get('loader') });
    this.#problems.set('loader', turn.loader);
    if (turn.news === 'yes') this.#publishStatus();
  }

  async #watchAge(): Promise<void> {
    const { stop } = this.#options;
    if ((await this.#staleWatch.check(this.#host, this.#contact, stop)) === 'changed') this.#publishStatus();
  }

  #refuseWhenStopping(): void {
    if (this.#options.stop.aborted) throw new WritError('AGENT_STOPPING', 'the agent is shutting down');
  }

  /** Every end of a cycle or a rollback comes by here: log, history, status. */
  #note(end: CycleEnd, asked: { readonly by?: string; readonly reason?: string }): void {
    this.#last = end.result;
    if (end.result.changed) this.#problems.delete('damage');
    this.#recorder.record(this.#host, end, asked);
    this.#observers.onCycle(end);
    this.#publishStatus();
  }

  #noteLook({ repair }: Look): void {
    this.#problems.delete('damage');
    if (repair !== undefined) {
      this.#last = repair.result;
      this.#observers.onCycle(repair);
    }
    this.#publishStatus();
  }

  async #rollback(
    request: RequestOf<'rollback'>,
    onEvent: (answer: ControlAnswer) => void,
  ): Promise<CycleResult> {
    this.#refuseWhenStopping();
    const end = await rollBack(this.#host, { ...request, signal: this.#options.stop, onEvent });
    const { by, reason } = request;
    this.#note(end, { by, ...(reason === undefined ? {} : { reason }) });
    return end.result;
  }

  #status(held: readonly HeldStatus[] = this.#collector.report().held): StatusReport {
    const nextPollAtMs = this.#poller.nextAtMs();
    return statusReport(this.#host, {
      version: this.#options.version,
      state: this.#state,
      contact: this.#contact.read(),
      held,
      problems: [...this.#problems.values(), ...this.#collector.report().problems],
      ...(this.#last ? { last: this.#last } : {}),
      ...(nextPollAtMs === undefined ? {} : { nextPollAtMs }),
    });
  }

  #publishStatus(): void {
    const report = this.#status();
    writeStatusFile(this.#host, report);
    this.#observers.onStatus(report);
  }

  /**
   * A configuration with a mistake changes nothing: the agent goes on with the one it has, and says so.
   * @throws WritError what is wrong with it; in log and status already
   */
  #reload(): Promise<void> {
    this.#observers.onReload('began');
    return this.#runner.exclusive(async () => {
      try {
        await this.#replaceHost();
      } catch (error) {
        const problem = toWritError(error);
        this.#options.log.error({ err: problem }, 'the configuration was not reloaded; the old one stays');
        this.#problems.set('reload', problemOf(problem));
        this.#publishStatus();
        this.#observers.onReload('kept');
        throw problem;
      }
      this.#observers.onReload('reloaded');
      this.#scrubber.reloaded();
      this.#poller.reloaded();
    });
  }

  async #replaceHost(): Promise<void> {
    const { config } = loadConfig(this.#options.configPath);
    this.#host = await replaceHost(this.#host, config, this.#options);
    this.#problems.delete('reload');
    this.#options.log.info('configuration reloaded');
  }
}
