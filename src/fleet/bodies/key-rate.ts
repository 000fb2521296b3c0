// Rate limit for the reports of each key, applied before the body is read. Reports with a counter that is not above the last accepted
// one have their own limit: an attacker that replays a captured head uses up nothing of its host. Pure except for its counts; the
// caller passes the time.

interface Bucket {
  readonly left: number;
  readonly atMs: number;
}

interface KeyState {
  readonly counter: number;
  readonly isAccepted: boolean;
  readonly newer: Bucket;
  readonly older: Bucket;
}

export interface RateBound {
  readonly burst: number;
  readonly perSecond: number;
}

/** Allows a burst, because a host that was disconnected sends its stored outcomes in consecutive reports. */
export const newerReports: RateBound = { burst: 60, perSecond: 2 };
/** For repeats after a lost response, and for the challenge of a host that was restored from a snapshot. */
export const olderReports: RateBound = { burst: 10, perSecond: 0.2 };
/** Takes some megabytes. A removed key begins with a full burst again. */
const maxKeys = 50_000;

export class KeyRate {
  readonly #keys = new Map<string, KeyState>();

  /** @returns false if the key exceeds its rate; then no state changes */
  take(keyId: string, counter: number, nowMs: number): boolean {
    const state = this.#keys.get(keyId) ?? newKey(nowMs);
    const name = counter > state.counter ? 'newer' : 'older';
    const bound = name === 'newer' ? newerReports : olderReports;
    const left = leftOf(state[name], bound, nowMs);
    if (left < 1) return false;
    this.#remember(keyId, { ...state, [name]: { left: left - 1, atMs: nowMs } });
    return true;
  }

  /** @returns whether this server accepted the last report of this key that it judged */
  isAccepted(keyId: string): boolean {
    return this.#keys.get(keyId)?.isAccepted ?? false;
  }

  /** Records the verdict of a report. @param counter of that report, for which `take` was called before */
  note(keyId: string, counter: number, isAccepted: boolean): void {
    const state = this.#keys.get(keyId);
    if (state === undefined) return;
    const highest = isAccepted ? Math.max(counter, state.counter) : state.counter;
    this.#remember(keyId, { ...state, counter: highest, isAccepted });
  }

  #remember(keyId: string, state: KeyState): void {
    this.#keys.delete(keyId);
    this.#keys.set(keyId, state);
    const [oldest] = this.#keys.keys();
    if (this.#keys.size > maxKeys && oldest !== undefined) this.#keys.delete(oldest);
  }
}

function newKey(nowMs: number): KeyState {
  return {
    ...{ counter: 0, isAccepted: false },
    newer: { left: newerReports.burst, atMs: nowMs },
    older: { left: olderReports.burst, atMs: nowMs },
  };
}

function leftOf({ left, atMs }: Bucket, { burst, perSecond }: RateBound, nowMs: number): number {
  return Math.min(burst, left + ((nowMs - atMs) * perSecond) / 1000);
}
