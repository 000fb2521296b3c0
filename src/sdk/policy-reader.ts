// The library for workers, public as `writ/sdk`: connects to the agent on this host, calls the handler of the worker for each
// generation, and sends its verdict. Reconnects until it is closed. Reads and writes no policy file.

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

/** A complete, immutable policy. Read it from `path`, and never through the link `current`, which can change during the reading. */
export interface PolicyGeneration {
  readonly generation: number;
  /** Real path of the generation directory. */
  readonly path: string;
  /** @returns the directory of a bundle in this generation. @throws WritError USAGE for an invalid bundle name */
  bundle(name: string): string;
}

export interface PolicyOptions {
  /** Path of the group's socket, as /run/writ/workers/access.sock. */
  readonly socket: string;
  /** Name in `writ status`: letters, digits, `.`, `_`, `-`, at most 64. Default: the name of the program. */
  readonly name?: string;
  /**
   * Called for each generation, one at a time. While it runs, only the newest later generation waits. Resolve when the worker uses the
   * generation (ack). Throw to refuse it (nack): the host then restores the previous generation for all workers, so keep using that one.
   */
  readonly onGeneration: (generation: PolicyGeneration) => Promise<void> | void;
  /** Called after each event of the connection, which does not wait for it. It must not throw. */
  readonly onEvent?: (event: PolicyEvent) => void;
  /** The first and the longest delay before a new connection, in milliseconds. Default: 100 and 5000. */
  readonly delays?: { readonly firstMs: number; readonly maxMs: number };
  /** For tests: a random number from 0 to below 1; and a delay, which resolves at an abort. */
  readonly random?: () => number;
  readonly sleep?: (delayMs: number, signal: AbortSignal) => Promise<void>;
  readonly signal?: AbortSignal;
}

export interface PolicyConnection {
  /** The last generation that the handler accepted; undefined before the first. */
  readonly current: PolicyGeneration | undefined;
  /** Disconnects; resolves when a running handler has ended. */
  close(): Promise<void>;
}

/**
 * Connects to the agent, and connects again after each end of the connection, until `close` or an abort of `signal`.
 * @throws WritError USAGE for an invalid name; SOCKET_PATH_TOO_LONG
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
    // A random half, so that the workers do not all connect in the same instant after a restart of the agent.
    const retryInMs = longestMs * (0.5 + random() / 2);
    emit({ type: 'disconnected', reason, retryInMs });
    await sleep(retryInMs, signal);
  }
  await queue.stop();
}

/** Emits an event for the notification and one for the verdict; an offer that a newer one replaced has no verdict. */
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
