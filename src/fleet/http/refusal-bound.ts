// How often credentials that come from one address may be refused: beyond it, those that were not good lately are not looked at
// for a moment, so that guesses cost no look into the store. Who was let in lately goes on, also behind the address of a flood.
// In memory alone, with a bound on what is remembered.
import { createHash } from 'node:crypto';
import { type ErrorCode, isWritError, WritError } from '../../core/errors.js';
import { clientOf } from '../../platform/serve/admission.js';
import type { Clock } from '../../platform/time/clock.js';

export interface RefusalBound {
  /**
   * @param look judges the credential, and throws where it is refused
   * @throws FLEET_REFUSED_OFTEN without a look
   */
  guard<T>(
    from: { readonly address: string; readonly credential: string },
    look: () => Promise<T>,
  ): Promise<T>;
}

/** At once, and in a second for ever: hosts of an old token behind one proxy are many. */
const burst = 100;
const perSecond = 10;
const maxAddresses = 10_000;
const maxGood = 50_000;

/** What a credential is refused with; a store that is away is nobody's guess. */
const refusals: readonly ErrorCode[] = [
  ...(['FLEET_TOKEN_REFUSED', 'FLEET_IDENTITY_REFUSED'] as const),
  ...(['FLEET_KEY_UNKNOWN', 'FLEET_SIGNATURE_REFUSED'] as const),
  ...(['FLEET_HOST_NOT_COVERED', 'FLEET_ENROL_FULL'] as const),
];

interface Left {
  readonly looks: number;
  readonly atMs: number;
}

export function createRefusalBound(clock: Pick<Clock, 'monotonicMs'>): RefusalBound {
  const left = new Map<string, Left>();
  const good = new Map<string, true>();
  /** Looks under way, and who waits for one to be given back: no more than there are requests. */
  const looking = new Map<string, { readonly count: number; readonly waiting: (() => void)[] }>();
  const leftOf = (address: string): number => {
    const nowMs = clock.monotonicMs();
    const { looks, atMs } = left.get(address) ?? { looks: burst, atMs: nowMs };
    return Math.min(burst, looks + ((nowMs - atMs) * perSecond) / 1000);
  };
  const change = (address: string, by: number): void => {
    const looks = Math.max(0, leftOf(address) + by);
    remember(left, address, { looks, atMs: clock.monotonicMs() }, maxAddresses);
  };
  /** @returns the looks that it took: none for who was good lately where none are left */
  const takeLook = async (client: string, digest: string): Promise<0 | 1> => {
    for (;;) {
      if (leftOf(client) >= 1) {
        // Before the look: those that come at once are counted too.
        change(client, -1);
        const others = looking.get(client) ?? { count: 0, waiting: [] };
        looking.set(client, { ...others, count: others.count + 1 });
        return 1;
      }
      if (good.has(digest)) return 0;
      const others = looking.get(client);
      if (others === undefined) throw tooOften();
      // Behind a proxy many hosts are new to a server at once, and good: a look that finds so is given back.
      await new Promise<void>((wake) => others.waiting.push(wake));
    }
  };
  const endLook = (client: string, back: 0 | 1): void => {
    change(client, back);
    const { count, waiting } = looking.get(client) ?? { count: 0, waiting: [] };
    if (count > 1) looking.set(client, { count: count - 1, waiting });
    else looking.delete(client);
    for (const wake of waiting.splice(0, count > 1 ? back : waiting.length)) wake();
  };
  return {
    guard: async ({ address, credential }, look) => {
      const client = clientOf(address);
      const digest = createHash('sha256').update(credential).digest('base64');
      const taken = await takeLook(client, digest);
      let back = taken;
      try {
        const found = await look();
        remember(good, digest, true, maxGood);
        return found;
      } catch (error) {
        if (isWritError(error) && refusals.includes(error.code)) {
          back = 0;
          // Revoked: its thief has no more looks than others. A signature says nothing of the key that it names.
          if (error.code === 'FLEET_TOKEN_REFUSED') good.delete(digest);
        }
        throw error;
      } finally {
        if (taken === 1) endLook(client, back);
      }
    },
  };
}

/** Beyond the bound the one that was not heard of for longest is forgotten. */
function remember<T>(known: Map<string, T>, key: string, value: T, most: number): void {
  known.delete(key);
  known.set(key, value);
  const [oldest] = known.keys();
  if (known.size > most && oldest !== undefined) known.delete(oldest);
}

function tooOften(): WritError {
  return new WritError('FLEET_REFUSED_OFTEN', 'too many credentials from this address were refused');
}
