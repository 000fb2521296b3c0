// Requests of a whole fleet by the second, and their statistics: the mean, the peak, and whether a period was a herd. Pure.

export class LoadCurve {
  readonly #bySecond: Uint32Array;

  constructor(seconds: number) {
    this.#bySecond = new Uint32Array(Math.ceil(seconds));
  }

  /** @param atMs since the beginning */
  note(atMs: number): void {
    const second = Math.floor(atMs / 1000);
    this.#bySecond[second] = (this.#bySecond[second] ?? 0) + 1;
  }

  /** From a second up to another one, which is left out. */
  between(fromSecond: number, toSecond: number): Load {
    const seconds = this.#bySecond.subarray(fromSecond, toSecond);
    let [requests, peak, window, windowPeak] = [0, 0, 0, 0];
    for (const [at, count] of seconds.entries()) {
      requests += count;
      peak = Math.max(peak, count);
      window += count - (at >= windowSeconds ? (seconds[at - windowSeconds] ?? 0) : 0);
      windowPeak = Math.max(windowPeak, window);
    }
    const length = Math.max(1, seconds.length);
    return { requests, perSecond: requests / length, peak, windowPeak: windowPeak / windowSeconds };
  }
}

export interface Load {
  readonly requests: number;
  /** Mean. */
  readonly perSecond: number;
  /** Of the fullest second. */
  readonly peak: number;
  /** Requests a second in the fullest ten seconds. */
  readonly windowPeak: number;
}

const windowSeconds = 10;
/** A release, and the one quick retry of a host without a server, each double what comes; both at once is as much as may be. */
const timesSteady = 3;

/** Hosts that come together: more in ten seconds than the days before let expect, chance left out. */
export function isHerd(load: Load, steady: Load): boolean {
  const expected = timesSteady * steady.perSecond * windowSeconds;
  return load.windowPeak * windowSeconds > expected + 6 * Math.sqrt(expected) + windowSeconds;
}
