// Tells the fleet server how this host is: at once when that has changed, else now and then. Owns the loop and what is known of
// the server; one exchange is report-source's. Nothing waits for it, and what goes wrong here is a warning of health, no more.
import { once } from 'node:events';
import type { FleetConfig } from '../../core/config/config.js';
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { isWritError, toWritError } from '../../core/errors.js';
import { withoutUndefined } from '../../core/given.js';
import type { FleetStatus } from '../../core/status/status.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { newsOf } from './make-report.js';
import { createReportSource, type ReportSource, type ReportSourceOptions } from './report-source.js';
import { ReportTimes } from './report-times.js';
import { withinTime } from './within-time.js';

export interface ReporterOptions extends Omit<ReportSourceOptions, 'speaker'> {
  readonly random01: () => number;
  /** What `status` says of the fleet may be another thing. */
  readonly onNews: () => void;
  readonly stop: AbortSignal;
}

const exchangeTimeoutMs = 10_000;
const lastWordMs = 2000;
/** A server that was away for a moment is no news. */
const quietFailures = 2;

/** Made by the door of the running agent. */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #source: ReportSource;
  readonly #times: ReportTimes;
  #waking = new AbortController();
  #problem: Problem | undefined;

  constructor(options: ReporterOptions) {
    this.#options = options;
    this.#source = createReportSource({ ...options, speaker: 'agent' });
    const { host, identity, random01 } = options;
    this.#times = new ReportTimes({
      ...{ random01, clock: () => host().clock },
      installId: () => identity().installId,
    });
  }

  /** Reports until the agent is told to end; never rejects. */
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
      const waitMs = this.#times.untilDue(fleet, this.#told(fleet));
      if (waitMs > 0) await host().clock.sleep(waitMs, sooner.signal);
      else await this.#attempt(fleet);
    }
  }

  /** The status may be another one. */
  look(): void {
    this.#waking.abort();
  }

  reloaded(): void {
    this.#times.reloaded();
    this.#problem = undefined;
    this.look();
  }

  noteEnd(end: CycleEnd): void {
    if (this.#config() === undefined) return;
    try {
      this.#source.note(end);
    } catch (error) {
      this.#options.host().log.warn({ err: error }, 'an outcome could not be kept for the fleet server');
    }
    this.look();
  }

  /** What health is to hear of. */
  problem(): Problem | undefined {
    const code = this.#problem?.code;
    const isQuiet = code === 'FLEET_UNREACHABLE' || code === 'FLEET_BUSY';
    return isQuiet && this.#times.failures() <= quietFailures ? undefined : this.#problem;
  }

  /** Undefined where no fleet is configured. */
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

  /** One report more, of an agent that has ended; bounded, and none where the last one was in vain. */
  async lastWord(): Promise<void> {
    const fleet = this.#config();
    const isKnown = this.#source.known()?.enrolment()?.state === 'accepted';
    if (fleet === undefined || !isKnown || this.#problem !== undefined) return;
    const { clock, log } = this.#options.host();
    try {
      await withinTime(clock, lastWordMs, (signal) => this.#send(fleet, lastWordMs, signal));
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

  /** @returns undefined where no report can be made: the attempt says why */
  #told(fleet: FleetConfig): 'news' | 'same' | undefined {
    try {
      const news = newsOf(this.#source.make(fleet, this.#times.everyMs(fleet)));
      return news === this.#source.known()?.outcomes().acknowledged?.news ? 'same' : 'news';
    } catch (error) {
      if (!isWritError(error)) throw error;
      return undefined;
    }
  }

  async #attempt(fleet: FleetConfig): Promise<void> {
    const { host, stop, onNews } = this.#options;
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
    onNews();
  }
}
