// How often each key may report, counted before its body is read. Reports with a counter that is not above the last accepted one have
// a count of their own: a captured head that an attacker sends again uses up nothing of its host. Pure except for its own counts; time is
// handed in.

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

/** A host that was cut off sends what it kept in reports one after the other. */
export const newerReports: RateBound = { burst: 60, perSecond: 2 };
/** A repeat after a lost answer, or a host that was restored from a snapshot, which is challenged once. */
export const olderReports: RateBound = { burst: 10, perSecond: 0.2 };
/** Some megabytes. A key that is forgotten begins again. */
const maxKeys = 50_000;

export class KeyRate {
  readonly #keys = new Map<string, KeyState>();

  /** @returns false where the key has used up its rate; nothing else changes then */
  take(keyId: string, counter: number, nowMs: number): boolean {
    const state = this.#keys.get(keyId) ?? newKey(nowMs);
    const name = counter > state.counter ? 'newer' : 'older';
    const bound = name === 'newer' ? newerReports : olderReports;
    const left = leftOf(state[name], bound, nowMs);
    if (left < 1) return false;
    this.#remember(keyId, { ...state, [name]: { left: left - 1, atMs: nowMs } });
    return true;
  }

  /** @returns whether the last report of this key that this server judged was accepted */
  isAccepted(keyId: string): boolean {
    return this.#keys.get(keyId)?.isAccepted ?? false;
  }

  /** @param counter of the judged report, which was taken before */
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
