// One generation at a time through the worker's handler: what arrives meanwhile waits, and only the newest of
// it. Owns which generation the handler accepted last; knows no sockets.
import type { GenerationMessage } from '../core/protocol/native-protocol.js';

export type Verdict = { readonly type: 'ack' } | { readonly type: 'nack'; readonly reason: string };

export interface Offer {
  /** The connection that notified it: numbers are only comparable within one. */
  readonly sender: object;
  readonly message: GenerationMessage;
  /** Called once with the verdict, and not at all when something newer takes the place. */
  readonly reply: (verdict: Verdict) => void;
}

export interface GenerationQueue {
  offer(offer: Offer): void;
  /** Drops what waits; resolves when the handler is done. */
  stop(): Promise<void>;
}

/** @param handle throws for a generation that the worker does not want */
export function createGenerationQueue(
  handle: (message: GenerationMessage) => Promise<void>,
): GenerationQueue {
  let next: Offer | undefined;
  let running: Promise<void> | undefined;
  /** What the handler accepted last, and nothing has shaken since. */
  let settled: Offer | undefined;

  const judge = async (offer: Offer): Promise<Verdict> => {
    if (settled !== undefined && isSame(settled, offer)) return { type: 'ack' };
    // A handler that fails may have let go of what it had: then even the generation before is due again.
    settled = undefined;
    try {
      await handle(offer.message);
      settled = offer;
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

/** Across connections a number proves nothing: a new agent on the same host counts from 1 again. */
function isSame(one: Offer, other: Offer): boolean {
  return (
    one.sender === other.sender &&
    one.message.generation === other.message.generation &&
    one.message.path === other.message.path
  );
}
