// A server with the answers of a test and an HTTP source that reads from it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { defaultTransportLimits, type TransportLimits } from '../../../src/core/limits.js';
import { openRepositorySource } from '../../../src/trust/sources/repository-source.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { fakeClock } from '../clock/fake-clock.js';
import { type HttpFixture, httpFixture } from './http-fixture.js';

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

interface Bench {
  readonly server: HttpFixture;
  readonly source: RepositorySource;
  [Symbol.asyncDispose](): Promise<void>;
}

export const nowMs = Date.UTC(2026, 10, 1);

/** @returns a server with these responses and a source that reads from it. Its disposal closes both. */
export async function bench(answer: Answer, limits: Partial<TransportLimits> = {}): Promise<Bench> {
  const server = await httpFixture(answer);
  const source = open(server.url, limits);
  return {
    server,
    source,
    [Symbol.asyncDispose]: async () => {
      await source.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** @returns an HTTP source with a fake clock and the default limits, except for the given ones */
export function open(url: string, limits: Partial<TransportLimits> = {}): RepositorySource {
  const clock = fakeClock({ nowMs });
  return openRepositorySource(url, {
    clock,
    version: '9.9.9',
    limits: { ...defaultTransportLimits, ...limits },
  });
}

export const always =
  (status: number, headers: Record<string, string> = {}, body = ''): Answer =>
  (_request, response) => {
    response.writeHead(status, headers);
    response.end(body);
  };
