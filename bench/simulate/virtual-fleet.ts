// A fleet in virtual time: each host runs the schedule, the retries (ReportTimes) and the answer parser of the agent. Only the
// answers of the server are real: it accepts a report, answers 503, or is unreachable. No network, no disk, one result per seed.
import { clampIntervalMs, judgeReply, readReportAnswer } from '../../src/agent/fleet/fleet-answers.js';
import { ReportTimes } from '../../src/agent/fleet/report-times.js';
import type { FleetConfig } from '../../src/core/config/config.js';
import { nextPollAt, phaseMs } from '../../src/core/cycle/schedule.js';
import { isWritError } from '../../src/core/errors.js';
import { grantedInterval } from '../../src/fleet/hosts/counter-rules.js';
import { ReportRate } from '../../src/fleet/hosts/report-rate.js';
import type { HttpReply } from '../../src/platform/net/http-request.js';
import type { Clock } from '../../src/platform/time/clock.js';
import { identityOfSample } from '../fleet/sample-host.js';
import { EventQueue } from './event-queue.js';
import { LoadCurve } from './load-curve.js';

/** What may be planted, so that it is seen. `one phase`: no host has a turn of its own. `impatient`: tries every ten seconds. */
export type Fault = 'none' | 'one phase' | 'impatient';

export interface FleetTimes {
  /** All is well, with a release in its middle. */
  readonly steadyMs: number;
  /** The server does not answer; each host has a change to report in the meantime. */
  readonly outageMs: number;
  readonly afterMs: number;
}

export interface VirtualFleetOptions {
  readonly hosts: number;
  readonly everyMs: number;
  readonly seed: number;
  readonly times: FleetTimes;
  /** Beyond it the server answers 503. */
  readonly capacityPerSecond: number;
  /** Beyond it the server grants longer intervals. */
  readonly maxReportsPerSecond: number;
  readonly fault: Fault;
}

export interface VirtualFleet {
  /** Of requests, by the second since the beginning. */
  readonly asked: LoadCurve;
  /** Of those that were stored and reported something new. */
  readonly changed: LoadCurve;
  /** Answered 503. */
  readonly turnedAway: number;
  /** From the end of the outage until the last host reported its change; undefined if one did not. */
  readonly healedMs: number | undefined;
  /** As it was granted last, in the mean. */
  readonly grantedMs: number;
}

interface VirtualHost {
  readonly times: ReportTimes;
  readonly pollPhaseMs: number;
  /** An older wake of it is no more. */
  wakeAtMs: number;
  learnsAtMs: number;
  hasChange: boolean;
}

const pollEveryMs = 300_000;
/** From the poll that finds a release to the end of its cycle. */
const cycleMs = 2000;
const impatientMs = 10_000;
const url = new URL('http://fleet.example/v1/reports');
const gone: HttpReply = { kind: 'failed', reason: 'ECONNREFUSED' };
const full: HttpReply = { kind: 'answered', status: 503, body: '', retryAfterMs: 5000 };

export function runVirtualFleet(options: VirtualFleetOptions): VirtualFleet {
  return new Simulation(options).run();
}

class Simulation {
  readonly #options: VirtualFleetOptions;
  readonly #config: FleetConfig;
  readonly #beganAtMs = Date.UTC(2026, 10, 2);
  readonly #endMs: number;
  readonly #queue = new EventQueue();
  readonly #hosts: readonly VirtualHost[];
  readonly #random01: () => number;
  readonly #rate: ReportRate;
  readonly #asked: LoadCurve;
  readonly #changed: LoadCurve;
  #nowMs = 0;
  #turnedAway = 0;
  #second = { number: -1, taken: 0 };
  #untold = 0;
  #healedAtMs: number | undefined;

  constructor(options: VirtualFleetOptions) {
    const { everyMs, times, seed, maxReportsPerSecond } = options;
    this.#options = options;
    const kind = { detail: 'codes', stay: 'lasting', claim: 'new' } as const;
    this.#config = { url: 'http://fleet.example', tokenFile: '', everyMs, ...kind };
    this.#endMs = times.steadyMs + times.outageMs + times.afterMs;
    this.#random01 = seeded(seed);
    this.#rate = new ReportRate(maxReportsPerSecond);
    this.#asked = new LoadCurve(this.#endMs / 1000);
    this.#changed = new LoadCurve(this.#endMs / 1000);
    this.#hosts = Array.from({ length: options.hosts }, (_, number) => this.#newHost(number));
  }

  run(): VirtualFleet {
    const { steadyMs, outageMs } = this.#options.times;
    this.#release(steadyMs / 2);
    for (const number of this.#hosts.keys()) this.#wake(number, 0);
    let wake = this.#queue.pop(this.#endMs - 1);
    let isBegun = false;
    for (; wake !== undefined; wake = this.#queue.pop(this.#endMs - 1)) {
      this.#nowMs = wake.atMs;
      if (!isBegun && outageMs > 0 && this.#nowMs >= steadyMs) {
        isBegun = true;
        this.#release(steadyMs + outageMs / 2);
      }
      this.#turn(wake.host, wake.atMs);
    }
    const granted = this.#hosts.reduce((sum, { times }) => sum + times.everyMs(this.#config), 0);
    return {
      ...{ asked: this.#asked, changed: this.#changed, turnedAway: this.#turnedAway },
      healedMs: this.#untold > 0 ? undefined : (this.#healedAtMs ?? 0) - steadyMs - outageMs,
      grantedMs: granted / Math.max(1, this.#hosts.length),
    };
  }

  #newHost(number: number): VirtualHost {
    const { fault, everyMs } = this.#options;
    const { installId } = identityOfSample(fault === 'one phase' ? 0 : number);
    const nowMs = (): number => this.#beganAtMs + this.#nowMs;
    const clock: Clock = {
      nowMs,
      monotonicMs: () => this.#nowMs,
      bootMs: () => this.#nowMs,
      sleep: () => Promise.resolve(),
    };
    const times = new ReportTimes({
      clock: () => clock,
      installId: () => installId,
      random01: this.#random01,
    });
    // Reported before the beginning, at its own phase: a fleet that has been running.
    times.stored(this.#config, everyMs);
    const pollPhaseMs = phaseMs(installId, pollEveryMs);
    return { times, pollPhaseMs, wakeAtMs: 0, learnsAtMs: Number.POSITIVE_INFINITY, hasChange: false };
  }

  /** Each host has taken it, or refused it, after its own next poll. */
  #release(atMs: number): void {
    for (const [number, host] of this.#hosts.entries()) {
      const nowMs = this.#beganAtMs + atMs;
      const pollAtMs = nextPollAt({ nowMs, everyMs: pollEveryMs, phaseMs: host.pollPhaseMs });
      host.learnsAtMs = pollAtMs + cycleMs - this.#beganAtMs;
      this.#queue.push({ atMs: host.learnsAtMs, host: number });
    }
  }

  #turn(number: number, atMs: number): void {
    const host = this.#hosts[number];
    if (host === undefined) return;
    if (atMs === host.learnsAtMs) {
      host.learnsAtMs = Number.POSITIVE_INFINITY;
      if (!host.hasChange) this.#untold++;
      host.hasChange = true;
    } else if (atMs !== host.wakeAtMs) return;
    if (host.times.untilDue(this.#config, host.hasChange) <= 0 || this.#isImpatient(host))
      this.#attempt(host);
    const isHasty = this.#options.fault === 'impatient' && host.times.failures() > 0;
    const dueMs = host.times.untilDue(this.#config, host.hasChange);
    this.#wake(number, Math.max(1, isHasty ? Math.min(dueMs, impatientMs) : dueMs));
  }

  #isImpatient(host: VirtualHost): boolean {
    return this.#options.fault === 'impatient' && host.times.failures() > 0;
  }

  #wake(number: number, inMs: number): void {
    const host = this.#hosts[number];
    if (host === undefined) return;
    host.wakeAtMs = this.#nowMs + inMs;
    this.#queue.push({ atMs: host.wakeAtMs, host: number });
  }

  #attempt(host: VirtualHost): void {
    const { times, hasChange } = host;
    times.began();
    this.#asked.note(this.#nowMs);
    try {
      const { everyMs } = readReportAnswer(judgeReply(this.#answer(), url, 'report'), url);
      times.stored(this.#config, clampIntervalMs(this.#config.everyMs, everyMs));
    } catch (error) {
      if (!isWritError(error)) throw error;
      times.failed(this.#config, 'failed', error.facts['retryAfterMs']);
      return;
    }
    if (!hasChange) return;
    this.#changed.note(this.#nowMs);
    host.hasChange = false;
    this.#untold--;
    this.#healedAtMs = this.#nowMs;
  }

  /** As a server does: by its rate, within what it can take. */
  #answer(): HttpReply {
    const { times, capacityPerSecond } = this.#options;
    if (this.#nowMs >= times.steadyMs && this.#nowMs < times.steadyMs + times.outageMs) return gone;
    this.#rate.count(this.#nowMs);
    const number = Math.floor(this.#nowMs / 1000);
    if (this.#second.number !== number) this.#second = { number, taken: 0 };
    if (++this.#second.taken > capacityPerSecond) {
      this.#turnedAway++;
      return full;
    }
    const everyMs = grantedInterval(this.#config.everyMs, this.#rate.factor);
    return { kind: 'answered', status: 200, body: JSON.stringify({ everyMs, outcomes: 0 }) };
  }
}

/** mulberry32: small, and the same everywhere. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
