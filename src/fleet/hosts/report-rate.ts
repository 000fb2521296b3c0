// Measures the rate of reports, and computes by which factor hosts must lengthen their report interval. Pure except for its counts;
// the caller passes the time.

const overMs = 10_000;
const longest = 10;

export class ReportRate {
  readonly #maxPerSecond: number;
  #sinceMs = 0;
  #reports = 0;
  #factor = 1;

  constructor(maxPerSecond: number) {
    this.#maxPerSecond = maxPerSecond;
  }

  /** Multiplies the report interval that a host asks for; 1 or more. */
  get factor(): number {
    return this.#factor;
  }

  count(nowMs: number): void {
    if (nowMs - this.#sinceMs < overMs && nowMs >= this.#sinceMs) {
      this.#reports++;
      return;
    }
    const perSecond = (this.#reports * 1000) / Math.max(overMs, nowMs - this.#sinceMs);
    // Move half of the distance, because earlier grants still slow hosts: a full correction would oscillate.
    const wanted = Math.min(longest, Math.max(1, (this.#factor * perSecond) / this.#maxPerSecond));
    this.#factor = perSecond === 0 ? 1 : (this.#factor + wanted) / 2;
    this.#sinceMs = nowMs;
    this.#reports = 1;
  }
}
