// Calls the handler of a worker for one generation at a time; of those that arrive in the meantime only the newest waits. Remembers the
// generation that the handler accepted last.
import type { GenerationMessage } from '../core/protocol/native-protocol.js';

export type Verdict = { readonly type: 'ack' } | { readonly type: 'nack'; readonly reason: string };

export interface Offer {
  /** The connection of the notification: generation numbers are only comparable within one connection. */
  readonly sender: object;
  readonly message: GenerationMessage;
  /** Called once with the verdict; never called if a newer offer replaces this one. */
  readonly reply: (verdict: Verdict) => void;
}

export interface GenerationQueue {
  offer(offer: Offer): void;
  /** Drops the waiting offer; resolves when the handler has ended. */
  stop(): Promise<void>;
}

/** @param handle throws for a generation that the worker refuses. @returns an empty queue */
export function createGenerationQueue(
  handle: (message: GenerationMessage) => Promise<void>,
): GenerationQueue {
  let next: Offer | undefined;
  let running: Promise<void> | undefined;
  /** The offer that the handler accepted last; undefined after a refusal. */
  let accepted: Offer | undefined;

  const judge = async (offer: Offer): Promise<Verdict> => {
    if (accepted !== undefined && isSame(accepted, offer)) return { type: 'ack' };
    // A failing handler may have dropped the generation that it used, so that this one must be offered to it again.
    accepted = undefined;
    try {
      await handle(offer.message);
      accepted = offer;
      return { type: 'ack' };
    } catch (error) {
      return { type: 'nack', reason: error instanceof Error ? error.message : String(error) };
    }
  };
  const drain = async (): Promise<void> => {
    for (let offer = next; offer !== undefined; offer = next) {
      next = undefined;
      offer.reply(await judge(offer));
    }
    running = undefined;
  };
  return {
    offer: (offer) => {
      next = offer;
      running ??= drain();
    },
    stop: async () => {
      next = undefined;
      await running;
    },
  };
}

/** Compares the connection too, because a new agent on the same host starts its numbers at 1. */
function isSame(one: Offer, other: Offer): boolean {
  return (
    one.sender === other.sender &&
    one.message.generation === other.message.generation &&
    one.message.path === other.message.path
  );
}
