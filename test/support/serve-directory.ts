// A repository directory on a local web server that may misbehave. Owns plain answers; how one is bent is the test's.
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { type HttpFixture, httpFixture } from './http-fixture.js';

/** @returns true when it has answered, or will never answer */
export type Bend = (path: string, response: ServerResponse, honest: () => Buffer) => boolean;

/** @example await using server = await serveDirectory(repository, () => false); */
export function serveDirectory(directory: string, bend: Bend): Promise<HttpFixture> {
  return httpFixture((request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? '/';
    const honest = (): Buffer => readFileSync(join(directory, path));
    if (bend(path, response, honest)) return;
    try {
      response.end(honest());
    } catch {
      response.writeHead(404).end();
    }
  });
}
