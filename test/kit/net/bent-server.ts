// A simulated repository with a real web server. A test changes some answers, for faults of a connection:
// slow, stopped and endless answers.
import type { ServerResponse } from 'node:http';
import { defaultTransportLimits, type TransportLimits } from '../../../src/core/limits.js';
import { openRepositorySource } from '../../../src/trust/sources/repository-source.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { fakeClock } from '../clock/fake-clock.js';
import { httpFixture } from './http-fixture.js';

export interface BentServer {
  /** For TestHostOptions: replaces the simulator as the source of the client. */
  readonly source: (simulated: RepositorySource) => RepositorySource;
  /** Changes the answers to matching paths from now on; undefined: all answers are correct. */
  bent: Bend | undefined;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface Bend {
  readonly path: RegExp;
  readonly answer: (response: ServerResponse) => void;
}

/**
 * @param limits of changed answers only, because a correct one may take longer on a busy machine
 * @example await using server = await bentServer(); using host = await attackedHost({ source: server.source });
 */
export async function bentServer(limits: Partial<TransportLimits> = {}): Promise<BentServer> {
  let simulated: RepositorySource | undefined;
  const sources: RepositorySource[] = [];
  const http = await httpFixture((request, response) => {
    const path = (request.url ?? '').slice(1);
    if (server.bent?.path.test(path)) server.bent.answer(response);
    else void answerHonestly(simulated, path, response);
  });
  const open = (transport: TransportLimits): RepositorySource => {
    const source = openRepositorySource(http.url, {
      clock: fakeClock(),
      version: '9.9.9',
      limits: transport,
    });
    sources.push(source);
    return source;
  };
  const server: BentServer = {
    bent: undefined,
    source: (given) => {
      simulated = given;
      const patient = open(defaultTransportLimits);
      const strict = open({ ...defaultTransportLimits, ...limits });
      return sourceByPath((path) => (server.bent?.path.test(path) ? strict : patient));
    },
    [Symbol.asyncDispose]: async () => {
      for (const source of sources) await source.close();
      await http[Symbol.asyncDispose]();
    },
  };
  return server;
}

/** @returns a source that uses the source of `choose` for each path; the caller closes those */
export function sourceByPath(choose: (path: string) => RepositorySource): RepositorySource {
  return {
    location: choose('').location,
    fetch: (path, options) => choose(path).fetch(path, options),
    stream: (path, options) => choose(path).stream(path, options),
    close: async () => undefined,
  };
}

async function answerHonestly(
  source: RepositorySource | undefined,
  path: string,
  response: ServerResponse,
): Promise<void> {
  const verdict = await source?.fetch(path, { maxBytes: Number.MAX_SAFE_INTEGER });
  response.writeHead(verdict?.kind === 'found' ? 200 : 404);
  response.end(verdict?.kind === 'found' ? verdict.bytes : undefined);
}

/** Sends an endless body as fast as the client reads it. */
export function endless(response: ServerResponse): void {
  const chunk = Buffer.alloc(65_536, 0x20);
  const more = (): void => {
    while (!response.destroyed && response.write(chunk));
    if (!response.destroyed) response.once('drain', more);
  };
  more();
}

/** Sends an endless body one byte at a time. */
export function dripping(response: ServerResponse): void {
  const timer = setInterval(() => response.write(' '), 10);
  response.on('close', () => clearInterval(timer));
}
