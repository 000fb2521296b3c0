// Notifies the service manager (sd_notify): READY=1 once a verified policy is active and not before, the status line, reloads and the
// stop. Pings its watchdog while the running job keeps its deadlines. An observer: it changes no outcome and delays none.
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
   * Stops the pings, and resolves when the last notification is sent.
   * @param failure why the agent could not run
   */
  end(failure?: { readonly code: string; readonly message: string }): Promise<void>;
}

export interface ServiceManagerOptions {
  readonly notifier: Notifier;
  readonly clock: Clock;
  /** Aborted at a stop request to the agent. */
  readonly stop: AbortSignal;
}

/** Least time between two status lines without a change of state. */
const statusGapMs = 2000;
/** Time before READY=1 is sent again after a failure. */
const readyGapMs = 5000;

/** Begins the watchdog pings, if the service manager set a watchdog. Sends all else from the observer's events. */
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
  /** Whether a retry of READY=1 is scheduled. */
  #isRetrying = false;
  /** The number of reloads in progress. */
  #reloads = 0;
  #lastStatus: string | undefined;
  /** The wait before the next status line; undefined without one. */
  #pause: AbortController | undefined;
  #work: { readonly sinceMs: number; readonly boundMs: number } | undefined;

  readonly observer: AgentObserver = {
    onState: (state) => {
      this.#state = state;
      this.#notifyChange();
    },
    onStatus: (report) => {
      this.#report = report;
      this.#notifyChange();
    },
    onWork: (work, config) => this.#recordWork(work, config),
    onReload: (phase) => this.#recordReload(phase),
  };

  constructor({ notifier, clock, stop }: ServiceManagerOptions) {
    this.#notifier = notifier;
    this.#clock = clock;
    if (stop.aborted) this.#recordStop();
    stop.addEventListener('abort', () => this.#recordStop(), { once: true });
    const signal = this.#ended.signal;
    this.#watchdog = runWatchdog({ notifier, clock, works: () => this.#isWorkOnTime(), signal });
  }

  async end(failure?: Parameters<ServiceManager['end']>[0]): Promise<void> {
    this.#ended.abort();
    this.#pause?.abort();
    if (failure !== undefined) void this.#notifier.notify([`STATUS=${failure.code}: ${failure.message}`]);
    await this.#watchdog;
    await this.#notifier.idle();
  }

  /** Sends READY=1 at once, and a new status line no more often than every two seconds. */
  #notifyChange(): void {
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
    // A busy service manager can lose READY=1. Without a retry, units that wait for it would wait until the next change, which can take
    // hours on a healthy host.
    this.#phase = 'starting';
    if (this.#isRetrying) return;
    this.#isRetrying = true;
    await this.#clock.sleep(readyGapMs, this.#ended.signal);
    this.#isRetrying = false;
    if (!this.#ended.signal.aborted) this.#notifyChange();
  }

  async #notifyStatus(): Promise<void> {
    while (!this.#ended.signal.aborted && this.#phase !== 'stopping') {
      const before = this.#lastStatus;
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
    this.#lastStatus = `STATUS=${text ?? 'starting'}`;
    return this.#lastStatus as NotifyLine;
  }

  /** Sends nothing before the agent is ready, because the READY=1 that ends a reload would be false. */
  #recordReload(phase: 'began' | 'reloaded' | 'kept'): void {
    this.#reloads += phase === 'began' ? 1 : -1;
    if (this.#phase !== 'ready') return;
    if (phase === 'began') {
      void this.#notifier.notify(['RELOADING=1', `MONOTONIC_USEC=${monotonicUsec()}`, 'STATUS=reloading']);
    } else if (this.#reloads === 0) {
      void this.#notifyReady();
    }
  }

  #recordStop(): void {
    this.#phase = 'stopping';
    this.#pause?.abort();
    const work = this.#work;
    void this.#notifier.notify([
      'STOPPING=1',
      `STATUS=${work === undefined ? 'stopping' : 'stopping, after the running work is finished'}`,
      // A swap is finished before the stop; its steps have their own deadlines.
      ...(work === undefined ? [] : ([`EXTEND_TIMEOUT_USEC=${Math.ceil(work.boundMs) * 1000}`] as const)),
    ]);
  }

  #recordWork(work: Work, config: AgentConfig): void {
    const boundMs = longestSilenceMs(work.kind === 'step' ? work.step : 'none', config);
    this.#work = work.kind === 'ended' ? undefined : { sinceMs: this.#clock.monotonicMs(), boundMs };
  }

  #isWorkOnTime(): boolean {
    const work = this.#work;
    return work === undefined || this.#clock.monotonicMs() - work.sinceMs <= work.boundMs;
  }
}
