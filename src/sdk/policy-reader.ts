// The library of a worker, public as `writ/sdk`: connects to the agent on this host, hands each generation to
// the worker's handler, and answers for it. Reconnects for ever; never touches a policy file itself.

import { basename, join } from 'node:path';
import { setTimeout as sleepFor } from 'node:timers/promises';
import { computeBackoffMs } from '../core/backoff.js';
import { WritError } from '../core/errors.js';
import { maxSocketPathBytes } from '../core/limits.js';
import { isName } from '../core/names.js';
import { type GenerationMessage, isWorkerName } from '../core/protocol/native-protocol.js';
import { runSession } from './agent-session.js';
import { createGenerationQueue, type Offer } from './generation-queue.js';
import { type EmitPolicyEvent, emitTo, type PolicyEvent } from './policy-events.js';

export type { PolicyEvent } from './policy-events.js';

/** A whole, immutable policy: read it from here only, never through the `current` link. */
export interface PolicyGeneration {
  readonly generation: number;
  /** Real path of the generation directory. */
  readonly path: string;
  /** @returns the directory of a bundle in this generation. @throws WritError USAGE for what is not a bundle name */
  bundle(name: string): string;
}

export interface PolicyOptions {
  /** Path of the group's socket, as /run/writ/workers/access.sock. */
  readonly socket: string;
  /** Shown by `writ status`: letters, digits, `.`, `_`, `-`, at most 64. Default: the name of the program. */
  readonly name?: string;
  /**
   * Called for every generation, one at a time; while it runs, newer ones wait and only the newest is kept.
   * Resolve when the worker uses the generation (ack). Throw to refuse it (nack): the host goes back to the
   * generation before, for all workers, so keep using that one.
   */
  readonly onGeneration: (generation: PolicyGeneration) => Promise<void> | void;
  /** Called behind whatever happens on the connection; nothing waits for it, and it must not throw. */
  readonly onEvent?: (event: PolicyEvent) => void;
  /** Pause before the first new try and the longest one, in milliseconds: 100 and 5000. */
  readonly delays?: { readonly firstMs: number; readonly maxMs: number };
  /** For tests: a number from 0 up to 1, and a pause that ends at an abort without rejecting. */
  readonly random?: () => number;
  readonly sleep?: (delayMs: number, signal: AbortSignal) => Promise<void>;
  readonly signal?: AbortSignal;
}

export interface PolicyConnection {
  /** The last generation the handler accepted; undefined before the first. */
  readonly current: PolicyGeneration | undefined;
  /** Disconnects; resolves when a handler that runs is done. */
  close(): Promise<void>;
}

/**
 * Connects to the agent and stays connected.
 * @throws WritError USAGE for a name that is none, SOCKET_PATH_TOO_LONG
 */
export function connectPolicy(options: PolicyOptions): PolicyConnection {
  const name = options.name ?? basename(process.argv[1] ?? 'worker');
  requireUsable(name, options.socket);
  const closed = new AbortController();
  const signals = options.signal === undefined ? [] : [options.signal];
  const signal = AbortSignal.any([closed.signal, ...signals]);
  let current: PolicyGeneration | undefined;
  const handle = async (message: GenerationMessage): Promise<void> => {
    const generation = policyGeneration(message);
    await options.onGeneration(generation);
    current = generation;
  };
  const connected = stayConnected({ ...options, name, signal }, handle);
  return {
    get current() {
      return current;
    },
    close: async () => {
      closed.abort();
      await connected;
    },
  };
}

type Connecting = PolicyOptions & { readonly name: string; readonly signal: AbortSignal };

async function stayConnected(
  options: Connecting,
  handle: (message: GenerationMessage) => Promise<void>,
): Promise<void> {
  const { signal, sleep = realSleep, random = Math.random } = options;
  const backoff = options.delays ?? { firstMs: 100, maxMs: 5000 };
  const queue = createGenerationQueue(handle);
  const emit = emitTo(options.onEvent);
  let failures = 0;
  while (!signal.aborted) {
    const reason = await runSession({
      ...options,
      onConnected: (agentVersion) => emit({ type: 'connected', agentVersion }),
      onGeneration: (offer) => {
        failures = 0;
        queue.offer(watched(offer, emit));
      },
    });
    if (signal.aborted) break;
    failures += 1;
    const longestMs = computeBackoffMs(failures, backoff);
    // A random half: after a restart of the agent its workers must not all come in the same instant.
    const retryInMs = longestMs * (0.5 + random() / 2);
    emit({ type: 'disconnected', reason, retryInMs });
    await sleep(retryInMs, signal);
  }
  await queue.stop();
}

/** Says that it came, and what was answered; an offer that something newer replaced gets no answer. */
function watched(offer: Offer, emit: EmitPolicyEvent): Offer {
  const { generation, path } = offer.message;
  emit({ type: 'notified', generation, path });
  const reply: Offer['reply'] = (verdict) => {
    offer.reply(verdict);
    if (verdict.type === 'ack') emit({ type: 'accepted', generation });
    else emit({ type: 'refused', generation, reason: verdict.reason });
  };
  return { ...offer, reply };
}

function policyGeneration({ generation, path }: GenerationMessage): PolicyGeneration {
  return {
    generation,
    path,
    bundle: (name) => {
      if (isName(name)) return join(path, name);
      throw new WritError('USAGE', 'this is not a bundle name', { facts: { actual: name } });
    },
  };
}

function requireUsable(name: string, socket: string): void {
  if (!isWorkerName(name)) {
    throw new WritError('USAGE', 'this is not a worker name', {
      facts: { actual: name },
      hint: 'Give `name`: letters, digits, ".", "_" and "-", at most 64, a letter or digit first.',
    });
  }
  const bytes = Buffer.byteLength(socket);
  if (bytes <= maxSocketPathBytes) return;
  throw new WritError('SOCKET_PATH_TOO_LONG', `${socket} is longer than a socket path may be`, {
    facts: { path: socket, expected: maxSocketPathBytes, actual: bytes },
  });
}

async function realSleep(delayMs: number, signal: AbortSignal): Promise<void> {
  try {
    await sleepFor(delayMs, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
