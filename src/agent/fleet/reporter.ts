// Reports this host to the fleet server: shortly after each change, and otherwise at an interval. Owns the loop and the last
// problem; report-source does one exchange. No other job waits for it, and a failure is only a warning in `writ health`.
import { once } from 'node:events';
import type { FleetConfig } from '../../core/config/config.js';
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { isWritError, toWritError } from '../../core/errors.js';
import { withoutUndefined } from '../../core/given.js';
import type { FleetStatus } from '../../core/status/status.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { reportFingerprint } from './make-report.js';
import { createReportSource, type ReportSource, type ReportSourceOptions } from './report-source.js';
import { ReportTimes } from './report-times.js';
import { withinTime } from './within-time.js';

export interface ReporterOptions extends Omit<ReportSourceOptions, 'sender'> {
  readonly random01: () => number;
  /** Called when the fleet part of the status may have changed. */
  readonly onStatusChange: () => void;
  readonly stop: AbortSignal;
}

const exchangeTimeoutMs = 10_000;
const finalReportMs = 2000;
/** Number of failures without a problem, because a short outage of the server needs no attention. */
const quietFailures = 2;

/** The reporter of a running agent; lazy-reporter.ts creates it. */
export class FleetReporter {
  readonly #options: ReporterOptions;
  readonly #source: ReportSource;
  readonly #times: ReportTimes;
  #waking = new AbortController();
  #problem: Problem | undefined;

  constructor(options: ReporterOptions) {
    this.#options = options;
    this.#source = createReportSource({ ...options, sender: 'agent' });
    const { host, identity, random01 } = options;
    this.#times = new ReportTimes({
      ...{ random01, clock: () => host().clock },
      installId: () => identity().installId,
    });
  }

  /** Reports until a stop request; never rejects. */
  async run(): Promise<void> {
    const { host, stop } = this.#options;
    while (!stop.aborted) {
      this.#waking = new AbortController();
      using sooner = joinSignals(stop, this.#waking.signal);
      const fleet = this.#config();
      if (fleet === undefined) {
        await once(sooner.signal, 'abort');
        continue;
      }
      const waitMs = this.#times.untilDue(fleet, this.#hasChanged(fleet));
      if (waitMs > 0) await host().clock.sleep(waitMs, sooner.signal);
      else await this.#attempt(fleet);
    }
  }

  /** Ends the current wait, because the status may have changed. */
  wake(): void {
    this.#waking.abort();
  }

  reloaded(): void {
    this.#times.reloaded();
    this.#problem = undefined;
    this.wake();
  }

  noteEnd(end: CycleEnd): void {
    if (this.#config() === undefined) return;
    try {
      this.#source.note(end);
    } catch (error) {
      this.#options.host().log.warn({ err: error }, 'an outcome could not be kept for the fleet server');
    }
    this.wake();
  }

  /** @returns the problem for `writ health`; undefined during a short outage */
  problem(): Problem | undefined {
    const code = this.#problem?.code;
    const isQuiet = code === 'FLEET_UNREACHABLE' || code === 'FLEET_BUSY';
    return isQuiet && this.#times.failures() <= quietFailures ? undefined : this.#problem;
  }

  /** @returns undefined without a configured fleet */
  status(): FleetStatus | undefined {
    const fleet = this.#config();
    if (fleet === undefined) return undefined;
    const known = this.#source.known();
    const { keyId, state } = known?.enrolment() ?? {};
    const { acknowledged, pending = [] } = known?.outcomes() ?? {};
    return withoutUndefined<FleetStatus>({
      url: fleet.url,
      state: state === undefined ? 'enrolling' : state === 'waiting' ? 'waiting' : 'reporting',
      keyId,
      acknowledgedAtMs: this.#times.storedAtMs() ?? acknowledged?.atMs,
      everyMs: this.#times.everyMs(fleet),
      pending: pending.length,
      problem: this.#problem,
    });
  }

  /** Sends a last report with a short timeout when the agent stops; none if the previous report failed. */
  async sendFinalReport(): Promise<void> {
    const fleet = this.#config();
    const isKnown = this.#source.known()?.enrolment()?.state === 'accepted';
    if (fleet === undefined || !isKnown || this.#problem !== undefined) return;
    const { clock, log } = this.#options.host();
    try {
      await withinTime(clock, finalReportMs, (signal) => this.#send(fleet, finalReportMs, signal));
    } catch (error) {
      log.warn({ err: toWritError(error) }, 'the fleet server was not notified that the agent is stopping');
    }
  }

  #config(): FleetConfig | undefined {
    return this.#options.host().config.fleet;
  }

  #send(fleet: FleetConfig, timeoutMs: number, signal: AbortSignal) {
    return this.#source.send(fleet, { everyMs: this.#times.everyMs(fleet), timeoutMs, signal });
  }

  /** @returns undefined if no report can be created; the attempt then throws the reason */
  #hasChanged(fleet: FleetConfig): boolean | undefined {
    try {
      const fingerprint = reportFingerprint(this.#source.make(fleet, this.#times.everyMs(fleet)));
      return fingerprint !== this.#source.known()?.outcomes().acknowledged?.news;
    } catch (error) {
      if (!isWritError(error)) throw error;
      return undefined;
    }
  }

  async #attempt(fleet: FleetConfig): Promise<void> {
    const { host, stop, onStatusChange } = this.#options;
    const before = this.#problem?.code;
    try {
      this.#times.began();
      const { everyMs } = await this.#send(fleet, exchangeTimeoutMs, stop);
      this.#times.stored(fleet, everyMs);
      this.#problem = undefined;
      if (before !== undefined) host().log.info('the fleet server has a report again');
    } catch (error) {
      if (stop.aborted) return;
      const { code, facts } = toWritError(error);
      this.#times.failed(fleet, code === 'FLEET_KEY_WAITING' ? 'waits' : 'failed', facts['retryAfterMs']);
      this.#problem = problemOf(error);
      if (code !== before)
        host().log.warn({ err: toWritError(error) }, 'the fleet server did not get the report');
    }
    onStatusChange();
  }
}
