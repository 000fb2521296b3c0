// When the next report is due: shortly after a change, at the host's own phase of the granted interval, later after failures.
// Counts in monotonic time, so that a clock that is set moves nothing. Waits for nothing itself.
import type { FleetConfig } from '../../core/config/config.js';
import { nextDelay, phaseMs } from '../../core/cycle/schedule.js';
import { given } from '../../core/given.js';
import type { Clock } from '../../platform/time/clock.js';

export interface ReportTimesOptions {
  readonly clock: () => Clock;
  /** Gives the host its phase. */
  readonly installId: () => string;
  readonly random01: () => number;
}

/** What changes together is one report. */
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

  /** As the server granted it; to another interval than was configured then it says nothing. */
  everyMs(fleet: FleetConfig): number {
    return this.#granted?.askedMs === fleet.everyMs ? this.#granted.everyMs : fleet.everyMs;
  }

  /** Epoch milliseconds; undefined before the first in this process. */
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

  /** @param how `waits`: asked again at each phase, neither sooner nor ever more seldom */
  failed(fleet: FleetConfig, how: 'failed' | 'waits', retryAfterMs: unknown): void {
    this.#failures = how === 'waits' ? 2 : this.#failures + 1;
    this.#schedule(fleet, typeof retryAfterMs === 'number' ? retryAfterMs : undefined);
  }

  /** The configuration is another one: so may be what was in the way. */
  reloaded(): void {
    this.#failures = 0;
    this.#dueAtMs = undefined;
  }

  /**
   * @param told undefined where there is nothing to tell that could be made
   * @returns milliseconds; 0 or less: now
   */
  untilDue(fleet: FleetConfig, told: 'news' | 'same' | undefined): number {
    const nowMs = this.#options.clock().monotonicMs();
    if (this.#failures > 0 && this.#dueAtMs !== undefined) return this.#dueAtMs - nowMs;
    if (told === undefined) return 0;
    if (told === 'news') {
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
