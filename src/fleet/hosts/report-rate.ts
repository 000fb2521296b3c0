// How many reports come in a second, and by how much longer than they ask hosts are to wait for it. Pure except for its own counts; time
// is handed in.

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

  /** Of the interval that hosts ask for: 1 or more. */
  get factor(): number {
    return this.#factor;
  }

  count(nowMs: number): void {
    if (nowMs - this.#sinceMs < overMs && nowMs >= this.#sinceMs) {
      this.#reports++;
      return;
    }
    const perSecond = (this.#reports * 1000) / Math.max(overMs, nowMs - this.#sinceMs);
    // What was granted before still slows them: towards the new factor by a half, so that it does not swing.
    const wanted = Math.min(longest, Math.max(1, (this.#factor * perSecond) / this.#maxPerSecond));
    this.#factor = perSecond === 0 ? 1 : (this.#factor + wanted) / 2;
    this.#sinceMs = nowMs;
    this.#reports = 1;
  }
}
