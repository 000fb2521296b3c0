// Bounds how often credentials from one address are refused. Beyond the bound, a credential that was not accepted recently is refused
// without a read of the store, so that guesses cost little. A recently accepted credential still works behind the address of a flood.
// All state is in memory and bounded.
import { createHash } from 'node:crypto';
import { type ErrorCode, isWritError, WritError } from '../../core/errors.js';
import { clientOf } from '../../platform/serve/admission.js';
import type { Clock } from '../../platform/time/clock.js';

export interface RefusalBound {
  /**
   * @param check judges the credential, and throws where it is refused
   * @throws FLEET_REFUSED_OFTEN without a call of `check`
   */
  guard<T>(
    from: { readonly address: string; readonly credential: string },
    check: () => Promise<T>,
  ): Promise<T>;
}

/** At once, and for each second after: one proxy may have many hosts with an old token behind it. */
const burst = 100;
const perSecond = 10;
const maxAddresses = 10_000;
const maxGood = 50_000;

/** Codes of a refused credential; a store that cannot be reached is not a guess. */
const refusals: readonly ErrorCode[] = [
  ...(['FLEET_TOKEN_REFUSED', 'FLEET_IDENTITY_REFUSED'] as const),
  ...(['FLEET_KEY_UNKNOWN', 'FLEET_SIGNATURE_REFUSED'] as const),
  ...(['FLEET_HOST_NOT_COVERED', 'FLEET_ENROL_FULL'] as const),
];

interface RemainingAttempts {
  readonly attempts: number;
  readonly atMs: number;
}

/** @returns a bound without recorded refusals: each address begins with 100 attempts and regains 10 a second */
export function createRefusalBound(clock: Pick<Clock, 'monotonicMs'>): RefusalBound {
  const left = new Map<string, RemainingAttempts>();
  const good = new Map<string, true>();
  /** Checks that run now, and requests that wait for a returned attempt: at most as many as there are requests. */
  const running = new Map<string, { readonly count: number; readonly waiting: (() => void)[] }>();
  const countRemaining = (address: string): number => {
    const nowMs = clock.monotonicMs();
    const { attempts, atMs } = left.get(address) ?? { attempts: burst, atMs: nowMs };
    return Math.min(burst, attempts + ((nowMs - atMs) * perSecond) / 1000);
  };
  const addAttempts = (address: string, by: number): void => {
    const attempts = Math.max(0, countRemaining(address) + by);
    keepRecent(left, address, { attempts, atMs: clock.monotonicMs() }, maxAddresses);
  };
  /** @returns the number of attempts that it took: 0 for a recently accepted credential where none remains */
  const takeAttempt = async (client: string, digest: string): Promise<0 | 1> => {
    for (;;) {
      if (countRemaining(client) >= 1) {
        // Before the check, so that simultaneous requests are counted too.
        addAttempts(client, -1);
        const others = running.get(client) ?? { count: 0, waiting: [] };
        running.set(client, { ...others, count: others.count + 1 });
        return 1;
      }
      if (good.has(digest)) return 0;
      const others = running.get(client);
      if (others === undefined) throw createRefusedOften();
      // Behind a proxy many valid hosts may be new to a server at the same time: the attempt of an accepted one is returned.
      await new Promise<void>((wake) => others.waiting.push(wake));
    }
  };
  const endAttempt = (client: string, back: 0 | 1): void => {
    addAttempts(client, back);
    const { count, waiting } = running.get(client) ?? { count: 0, waiting: [] };
    if (count > 1) running.set(client, { count: count - 1, waiting });
    else running.delete(client);
    for (const wake of waiting.splice(0, count > 1 ? back : waiting.length)) wake();
  };
  return {
    guard: async ({ address, credential }, check) => {
      const client = clientOf(address);
      const digest = createHash('sha256').update(credential).digest('base64');
      const taken = await takeAttempt(client, digest);
      let back = taken;
      try {
        const found = await check();
        keepRecent(good, digest, true, maxGood);
        return found;
      } catch (error) {
        if (isWritError(error) && refusals.includes(error.code)) {
          back = 0;
          // A thief of a revoked token has no more attempts than others. A wrong signature proves nothing about the key that it names.
          if (error.code === 'FLEET_TOKEN_REFUSED') good.delete(digest);
        }
        throw error;
      } finally {
        if (taken === 1) endAttempt(client, back);
      }
    },
  };
}

/** Beyond the bound, the entry that was not used for the longest time is removed. */
function keepRecent<T>(known: Map<string, T>, key: string, value: T, most: number): void {
  known.delete(key);
  known.set(key, value);
  const [oldest] = known.keys();
  if (known.size > most && oldest !== undefined) known.delete(oldest);
}

function createRefusedOften(): WritError {
  return new WritError('FLEET_REFUSED_OFTEN', 'too many credentials from this address were refused');
}
