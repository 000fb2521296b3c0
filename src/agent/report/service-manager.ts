// Notifies the service manager what the agent is: ready when a verified policy is active and not before, one honest line of
// status, reloads, the end; and pings its watchdog while work goes on. An observer: it changes no outcome and delays none.
import type { AgentConfig } from '../../core/config/config.js';
import type { AgentState, StatusReport } from '../../core/status/status.js';
import { formatSystemdStatus, hasVerifiedPolicy } from '../../core/status/systemd-text.js';
import { monotonicUsec, type Notifier, type NotifyLine } from '../../platform/telemetry/sd-notify.js';
import { runWatchdog } from '../../platform/telemetry/watchdog.js';
import type { Clock } from '../../platform/time/clock.js';
import type { Work } from '../job/exclusive.js';
import type { AgentObserver } from './observer.js';
import { longestSilenceMs } from './step-bound-rules.js';

export interface ServiceManager {
  readonly observer: AgentObserver;
  /**
   * Ends the pings, and resolves when the last word is out.
   * @param failure what kept the agent from running
   */
  end(failure?: { readonly code: string; readonly message: string }): Promise<void>;
}

export interface ServiceManagerOptions {
  readonly notifier: Notifier;
  readonly clock: Clock;
  /** The agent is told to end. */
  readonly stop: AbortSignal;
}

/** Between two lines of status that are no change of state. */
const statusGapMs = 2000;
/** Between two tries to say that it is ready. */
const readyGapMs = 5000;

export function notifyServiceManager(options: ServiceManagerOptions): ServiceManager {
  return new Reporter(options);
}

class Reporter implements ServiceManager {
  readonly #notifier: Notifier;
  readonly #clock: Clock;
  readonly #ended = new AbortController();
  readonly #watchdog: Promise<void>;
  #state: AgentState = 'init';
  #report: StatusReport | undefined;
  #phase: 'starting' | 'ready' | 'stopping' = 'starting';
  /** The wait until it says once more that it is ready is under way. */
  #comesAgain = false;
  /** Reloads that have begun and not ended. */
  #reloads = 0;
  #said: string | undefined;
  /** The wait for the next line of status, when one is under way. */
  #pause: AbortController | undefined;
  #work: { readonly sinceMs: number; readonly boundMs: number } | undefined;

  readonly observer: AgentObserver = {
    onState: (state) => {
      this.#state = state;
      this.#notifyNews();
    },
    onStatus: (report) => {
      this.#report = report;
      this.#notifyNews();
    },
    onWork: (work, config) => this.#noteWork(work, config),
    onReload: (phase) => this.#noteReload(phase),
  };

  constructor({ notifier, clock, stop }: ServiceManagerOptions) {
    this.#notifier = notifier;
    this.#clock = clock;
    if (stop.aborted) this.#noteStop();
    stop.addEventListener('abort', () => this.#noteStop(), { once: true });
    const signal = this.#ended.signal;
    this.#watchdog = runWatchdog({ notifier, clock, works: () => this.#goesOn(), signal });
  }

  async end(failure?: Parameters<ServiceManager['end']>[0]): Promise<void> {
    this.#ended.abort();
    this.#pause?.abort();
    if (failure !== undefined) void this.#notifier.notify([`STATUS=${failure.code}: ${failure.message}`]);
    await this.#watchdog;
    await this.#notifier.idle();
  }

  /** Says what has changed: that it is ready at once, another line of status when the last one is old enough. */
  #notifyNews(): void {
    if (this.#phase === 'stopping' || this.#report === undefined) return;
    if (this.#phase === 'starting' && this.#state === 'run' && hasVerifiedPolicy(this.#report)) {
      this.#phase = 'ready';
      this.#pause?.abort();
      void this.#notifyReady();
      return;
    }
    if (this.#pause === undefined) void this.#notifyStatus();
  }

  async #notifyReady(): Promise<void> {
    const sent = await this.#notifier.notify(['READY=1', this.#statusLine()]);
    if (sent === 'sent' || this.#phase !== 'ready') return;
    // A service manager that was busy for longer than its word waits has lost it, and whoever waits for it would wait
    // until the next change: on a host where all is well, hours.
    this.#phase = 'starting';
    if (this.#comesAgain) return;
    this.#comesAgain = true;
    await this.#clock.sleep(readyGapMs, this.#ended.signal);
    this.#comesAgain = false;
    if (!this.#ended.signal.aborted) this.#notifyNews();
  }

  async #notifyStatus(): Promise<void> {
    while (!this.#ended.signal.aborted && this.#phase !== 'stopping') {
      const before = this.#said;
      const line = this.#statusLine();
      if (line === before) return;
      const pause = new AbortController();
      this.#pause = pause;
      await this.#notifier.notify([line]);
      await this.#clock.sleep(statusGapMs, pause.signal);
      this.#pause = undefined;
    }
  }

  #statusLine(): NotifyLine {
    const text =
      this.#state === 'init'
        ? 'checking the state of this host'
        : this.#report && formatSystemdStatus(this.#report);
    this.#said = `STATUS=${text ?? 'starting'}`;
    return this.#said as NotifyLine;
  }

  /** Before it is ready there is nothing to reload: the READY=1 of a reload would say what is not true. */
  #noteReload(phase: 'began' | 'reloaded' | 'kept'): void {
    this.#reloads += phase === 'began' ? 1 : -1;
    if (this.#phase !== 'ready') return;
    if (phase === 'began') {
      void this.#notifier.notify(['RELOADING=1', `MONOTONIC_USEC=${monotonicUsec()}`, 'STATUS=reloading']);
    } else if (this.#reloads === 0) {
      void this.#notifyReady();
    }
  }

  #noteStop(): void {
    this.#phase = 'stopping';
    this.#pause?.abort();
    const work = this.#work;
    void this.#notifier.notify([
      'STOPPING=1',
      `STATUS=${work === undefined ? 'stopping' : 'stopping, after the running work is finished'}`,
      // A swap is not left half way: what it still does has deadlines of its own.
      ...(work === undefined ? [] : ([`EXTEND_TIMEOUT_USEC=${Math.ceil(work.boundMs) * 1000}`] as const)),
    ]);
  }

  #noteWork(work: Work, config: AgentConfig): void {
    const boundMs = longestSilenceMs(work.kind === 'step' ? work.step : 'none', config);
    this.#work = work.kind === 'ended' ? undefined : { sinceMs: this.#clock.monotonicMs(), boundMs };
  }

  #goesOn(): boolean {
    const work = this.#work;
    return work === undefined || this.#clock.monotonicMs() - work.sinceMs <= work.boundMs;
  }
}
