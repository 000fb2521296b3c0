// A simulated repository behind a real web server, some of whose answers a test bends. For what only a connection
// can do: drip, stop, never end.
import type { ServerResponse } from 'node:http';
import { defaultTransportLimits, type TransportLimits } from '../../../src/core/limits.js';
import { openRepositorySource } from '../../../src/trust/sources/repository-source.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { fakeClock } from '../clock/fake-clock.js';
import { httpFixture } from './http-fixture.js';

export interface BentServer {
  /** For TestHostOptions: puts the server between the client and the simulator. */
  readonly source: (simulated: RepositorySource) => RepositorySource;
  /** Answers paths that match in this way from now on; undefined heals it. */
  bent: Bend | undefined;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface Bend {
  readonly path: RegExp;
  readonly answer: (response: ServerResponse) => void;
}

/**
 * @param limits hold for what is bent alone: on a busy machine an honest answer may take longer
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

/** Asks for each path the source that `choose` names; whoever opened them closes them. */
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

/** A body that never ends, as fast as it is taken. */
export function endless(response: ServerResponse): void {
  const chunk = Buffer.alloc(65_536, 0x20);
  const more = (): void => {
    while (!response.destroyed && response.write(chunk));
    if (!response.destroyed) response.once('drain', more);
  };
  more();
}

/** A body that never ends, one byte at a time. */
export function dripping(response: ServerResponse): void {
  const timer = setInterval(() => response.write(' '), 10);
  response.on('close', () => clearInterval(timer));
}
