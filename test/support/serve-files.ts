// Files in memory on a local web server: a repository that was never on a disk.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type HttpFixture, httpFixture } from './http-fixture.js';

/** @param files by path below the top, as `metadata/timestamp.json`; looked at on every request */
export function serveFiles(files: ReadonlyMap<string, Buffer>): Promise<HttpFixture> {
  return httpFixture((request: IncomingMessage, response: ServerResponse) => {
    const bytes = files.get((request.url ?? '/').slice(1));
    if (bytes === undefined) response.writeHead(404).end();
    else response.end(bytes);
  });
}
