// A repository on a local web server: files in memory, or a directory with answers that a test changes.
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { type HttpFixture, httpFixture } from './http-fixture.js';

/** @param files by path below the top, as `metadata/timestamp.json`; read at each request */
export function serveFiles(files: ReadonlyMap<string, Buffer>): Promise<HttpFixture> {
  return httpFixture((request: IncomingMessage, response: ServerResponse) => {
    const bytes = files.get((request.url ?? '/').slice(1));
    if (bytes === undefined) response.writeHead(404).end();
    else response.end(bytes);
  });
}

/** @returns true if it answered, or left the request without an answer on purpose */
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
