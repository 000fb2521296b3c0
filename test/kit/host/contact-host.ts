// A baking host with a server that a test makes unreachable, and the bake and contact rounds of an agent. Virtual time; it
// asserts nothing.
import * as fs from 'node:fs';
import { createContactTurn } from '../../../src/agent/contact/contact-turn.js';
import { syncCycle } from '../../../src/agent/cycle/sync-cycle.js';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import { exclusiveAlone } from '../../../src/agent/job/exclusive.js';
import { newCycleId } from '../../../src/agent/job/progress.js';
import type { Host } from '../../../src/agent/state/host.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from './baking-host.js';
import type { Files, TestHostOptions } from './test-host.js';

export interface ContactHost extends BakingHost {
  /** Whether the server answers; `active` is the content of the file `f` in the active release. */
  isReached: (active: string) => boolean;
  /** Times of the attempts, in epoch milliseconds of the clock. */
  readonly askedAtMs: number[];
  readonly askedServers: string[];
  /** The results of activations of another release because the server was unreachable. */
  readonly reactivated: CycleEnd[];
  /** As `pass`, with a contact round every second. */
  wait(forMs: number, host?: Host): Promise<void>;
  /** @returns the host as the agent opens it after a restart */
  restart(): Host;
}

/** `askServer` replaces `isReached`. */
export interface ContactHostOptions extends TestHostOptions {
  /** Files of serial 1. */
  readonly first?: Files;
  /** `no`: the function returns while serial 1 is in its bake time. */
  readonly settle?: 'no';
}

export const firstSettledMs = bakeMs + 10_000;

/**
 * @returns a host on which serial 1 of `access` is active and settled
 * @example using contact = await contactHost();
 */
export async function contactHost({
  first,
  settle,
  ...options
}: ContactHostOptions = {}): Promise<ContactHost> {
  const askedAtMs: number[] = [];
  const askedServers: string[] = [];
  const reactivated: CycleEnd[] = [];
  const pulls: Promise<CycleEnd>[] = [];
  const askServer: Host['contactServer'] = async (server) => {
    askedServers.push(server);
    askedAtMs.push(contact.test.clock.nowMs());
    if (options.askServer !== undefined) return options.askServer(server);
    return contact.isReached(activeOf(contact)) ? undefined : 'server.example: ECONNREFUSED';
  };
  const bake = { forMs: bakeMs, restarts: 2, contact: 'repository' } as const;
  const baking = bakingHost(supervisedDriver(['a']), {
    bundles: [{ name: 'access', bake }],
    ...options,
    askServer,
  });
  const stop = new AbortController().signal;
  const turnOf = (host: Host) =>
    createContactTurn({
      ...{ isObserved: true, host: () => host, exclusive: exclusiveAlone, stop, onNews: () => undefined },
      pull: () => {
        const request = { cycle: newCycleId(), trigger: 'poll', force: 'no', signal: stop } as const;
        pulls.push(syncCycle(host, request));
      },
      onReactivated: (end) => reactivated.push(end),
    });
  const contact: ContactHost = Object.assign(baking, {
    isReached: () => true,
    askedAtMs,
    askedServers,
    reactivated,
    restart: () => baking.test.reopen(),
    wait: async (forMs: number, host: Host = baking.test.host) => {
      const turn = turnOf(host);
      for (let leftMs = forMs; leftMs > 0; leftMs -= 1000) {
        await baking.pass(Math.min(1000, leftMs), host);
        await turn();
        await Promise.all(pulls.splice(0));
      }
    },
  });
  for (const { name } of (options.bundles ?? []).slice(1))
    await contact.test.publish(name, { f: '1' }, { serial: 1 });
  await contact.take(1, first);
  if (settle === 'no') return contact;
  await contact.wait(firstSettledMs);
  askedAtMs.length = 0;
  return contact;
}

/** @returns the content of the file `f`; '' before the first release */
function activeOf({ test }: ContactHost): string {
  const path = `${test.host.paths.current}/access/f`;
  return fs.existsSync(path) ? fs.readFileSync(path, 'utf8') : '';
}
