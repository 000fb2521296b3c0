// Calculates when the next report is due: shortly after a change, otherwise at the phase of this host in the granted interval,
// and later after failures. Uses monotonic time, so that a change of the wall clock has no effect.
import type { FleetConfig } from '../../core/config/config.js';
import { nextDelay, phaseMs } from '../../core/cycle/schedule.js';
import { given } from '../../core/given.js';
import type { Clock } from '../../platform/time/clock.js';

export interface ReportTimesOptions {
  readonly clock: () => Clock;
  /** Determines the phase of the host. */
  readonly installId: () => string;
  readonly random01: () => number;
}

/** Time in which several changes are collected into one report. */
const debounceMs = 1000;

export class ReportTimes {
  readonly #options: ReportTimesOptions;
  #failures = 0;
  #dueAtMs: number | undefined;
  #beganAtMs = Number.NEGATIVE_INFINITY;
  #changedAtMs: number | undefined;
  #storedAtMs: number | undefined;
  #granted: { readonly askedMs: number; readonly everyMs: number } | undefined;

  constructor(options: ReportTimesOptions) {
    this.#options = options;
  }

  /** @returns milliseconds: the interval that the server granted for the configured one, otherwise the configured one */
  everyMs(fleet: FleetConfig): number {
    return this.#granted?.askedMs === fleet.everyMs ? this.#granted.everyMs : fleet.everyMs;
  }

  /** @returns epoch milliseconds of the last stored report; undefined before the first in this process */
  storedAtMs(): number | undefined {
    return this.#storedAtMs;
  }

  failures(): number {
    return this.#failures;
  }

  began(): void {
    this.#beganAtMs = this.#options.clock().monotonicMs();
  }

  stored(fleet: FleetConfig, everyMs: number): void {
    this.#failures = 0;
    this.#storedAtMs = this.#options.clock().nowMs();
    this.#granted = { askedMs: fleet.everyMs, everyMs };
    this.#schedule(fleet, undefined);
  }

  /** Records a failure. @param how `waits`: the server has not accepted the host yet; retried at each phase, without a backoff */
  failed(fleet: FleetConfig, how: 'failed' | 'waits', retryAfterMs: unknown): void {
    this.#failures = how === 'waits' ? 2 : this.#failures + 1;
    this.#schedule(fleet, typeof retryAfterMs === 'number' ? retryAfterMs : undefined);
  }

  /** Ends the backoff after a reload, because a new configuration may have removed the cause of the failures. */
  reloaded(): void {
    this.#failures = 0;
    this.#dueAtMs = undefined;
  }

  /**
   * @param isChanged whether the report differs from the stored one; undefined if it could not be created
   * @returns milliseconds until the next report; 0 or less: now
   */
  untilDue(fleet: FleetConfig, isChanged: boolean | undefined): number {
    const nowMs = this.#options.clock().monotonicMs();
    if (this.#failures > 0 && this.#dueAtMs !== undefined) return this.#dueAtMs - nowMs;
    if (isChanged === undefined) return 0;
    if (isChanged) {
      this.#changedAtMs ??= nowMs;
      return Math.max(this.#changedAtMs, this.#beganAtMs) + debounceMs - nowMs;
    }
    this.#changedAtMs = undefined;
    this.#dueAtMs ??= this.#schedule(fleet, undefined);
    return this.#dueAtMs - nowMs;
  }

  #schedule(fleet: FleetConfig, retryAfterMs: number | undefined): number {
    const { clock, installId, random01 } = this.#options;
    const [nowMs, everyMs] = [clock().nowMs(), this.everyMs(fleet)];
    const delayMs = nextDelay({
      ...{ nowMs, everyMs, phaseMs: phaseMs(installId(), everyMs) },
      ...{ failures: this.#failures, random01: random01() },
      ...given({ retryAfterUntilMs: retryAfterMs === undefined ? undefined : nowMs + retryAfterMs }),
    });
    this.#changedAtMs = undefined;
    this.#dueAtMs = clock().monotonicMs() + delayMs;
    return this.#dueAtMs;
  }
}
