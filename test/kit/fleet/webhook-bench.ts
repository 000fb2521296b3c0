// A webhook in virtual time: a summary that the test sets, the real loop and store, and a receiver that records requests.
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { FleetSummary, OfferGroup } from '../../../src/core/fleet/answers.js';
import { summarize } from '../../../src/core/fleet/fleet-summary.js';
import type { FleetStore } from '../../../src/fleet/store/open-store.js';
import { runWebhook, type WebhookTarget } from '../../../src/fleet/webhook/webhook.js';
import type { WebhookBody } from '../../../src/fleet/webhook/webhook-body.js';
import { type LogLines, logLines } from '../assert/log-lines.js';
import { until } from '../assert/until.js';
import { type FakeClock, fakeClock } from '../clock/fake-clock.js';

const roundMs = 5_000;

export const refusedOffer: OfferGroup = {
  ...{ bundle: 'dns', channel: 'stable', serial: 43 },
  ...{ state: 'refused', code: 'CHECK_FAILED', hosts: 3 },
};

/** @returns the summary of a fleet without problems; `more` replaces members */
export function summaryWith(more: Partial<FleetSummary> = {}): FleetSummary {
  return summarize({
    ...{ fleet: 'f-1', atMs: 1000, countedAtMs: 1000, silence: 'judged', roots: [], versions: [], keys: [] },
    hosts: { accepted: 13, waiting: 0, stopped: 0, silent: 0, unjudged: 0, blocked: 0, cloned: 0, opa: 0 },
    ...{ releases: [], offers: [] },
    ...more,
  });
}

export interface Receiver extends AsyncDisposable {
  readonly url: URL;
  readonly bodies: WebhookBody[];
  readonly requests: IncomingMessage[];
  /** Called after the body was read; sends 200 by default. */
  answer: (response: ServerResponse) => void;
}

/**
 * @param tls certificate and key of the receiver; undefined: plain HTTP
 * @returns a listening receiver that records requests and bodies, and responds with 200 by default
 */
export async function receiver(tls?: { readonly cert: Buffer; readonly key: Buffer }): Promise<Receiver> {
  const received = { bodies: [] as WebhookBody[], requests: [] as IncomingMessage[] };
  const handle: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.requests.push(request);
      received.bodies.push(JSON.parse(Buffer.concat(chunks).toString()) as WebhookBody);
      self.answer(response);
    });
  };
  const server = tls === undefined ? createServer(handle) : createSecureServer(tls, handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const self: Receiver = {
    ...received,
    url: new URL(`${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}/hook/secret`),
    answer: (response) => void response.end(),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return self;
}

export interface RunningWebhook extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly log: LogLines;
  readonly results: string[];
  summary: FleetSummary;
  /** Waits until the loop sleeps, advances the clock to its next round, and waits until it sleeps again. */
  runRounds(times?: number): Promise<void>;
}

/** Starts the loop of the webhook with a summary without findings. Its disposal ends the loop. */
export function startWebhook(
  store: FleetStore,
  target: WebhookTarget,
  clock: FakeClock = fakeClock(),
): RunningWebhook {
  const ending = new AbortController();
  const log = logLines();
  const results: string[] = [];
  const rests = (): number => clock.sleeps.filter((ms) => ms === roundMs).length;
  const before = rests();
  let wantedRests = before + 1;
  const self: RunningWebhook = {
    ...{ clock, log, results, summary: summaryWith() },
    runRounds: async (times = 1) => {
      for (let at = 0; at < times; at++) {
        await until(() => rests() >= wantedRests);
        wantedRests++;
        await clock.advance(roundMs);
      }
      await until(() => rests() >= wantedRests);
    },
    [Symbol.asyncDispose]: async () => {
      ending.abort();
      await running;
    },
  };
  const running = runWebhook(store, {
    ...{ target, link: 'https://fleet.example.net', clock, log: log.log, signal: ending.signal },
    ...{ summary: async () => self.summary, onRequest: (result) => void results.push(result) },
  });
  return self;
}
