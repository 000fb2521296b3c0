// A repository source with files in memory that records requests. ETags are digests of the content.
import { createHash } from 'node:crypto';
import { exactLength, tooLarge } from '../../../src/trust/sources/exact-length.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';

/**
 * @param files served files by percent-encoded path; read at each request
 * @param requests receives `GET path`, with ` if-none-match` if conditional, and `STREAM path from offset`
 */
export function simulatedSource(files: ReadonlyMap<string, Buffer>, requests: string[]): RepositorySource {
  return {
    location: 'memory:',
    fetch: async (path, { maxBytes, etag }) => {
      requests.push(`GET ${path}${etag === undefined ? '' : ' if-none-match'}`);
      const bytes = files.get(path);
      if (bytes === undefined) return { kind: 'absent' };
      const current = createHash('sha256').update(bytes).digest('hex');
      if (etag === current) return { kind: 'not-modified' };
      if (bytes.length > maxBytes) throw tooLarge(path, maxBytes, bytes.length);
      return { kind: 'found', bytes, etag: current };
    },
    stream: (path, { length, offset = 0, onBegin }) => {
      requests.push(`STREAM ${path} from ${offset}`);
      const bytes = files.get(path) ?? Buffer.alloc(0);
      onBegin?.({ offset });
      return exactLength(chunksOf(bytes.subarray(offset)), { expected: length - offset, what: path });
    },
    close: async () => undefined,
  };
}

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000);
}
