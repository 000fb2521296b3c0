// A source with additional files: the publisher verifies its next repository as a client before it publishes the timestamp.
import { exactLength, readBounded } from './exact-length.js';
import type { RepositorySource } from './source.js';

/** @param files by repository path, as `metadata/timestamp.json`; they replace those of the base */
export function overlaySource(
  base: RepositorySource,
  files: ReadonlyMap<string, Uint8Array>,
): RepositorySource {
  return {
    location: base.location,
    fetch: async (path, options) => {
      const bytes = files.get(path);
      if (bytes === undefined) return base.fetch(path, options);
      return { kind: 'found', bytes: await readBounded(once(bytes), options.maxBytes, path) };
    },
    stream: (path, options) => {
      const bytes = files.get(path);
      if (bytes === undefined) return base.stream(path, options);
      const { length, offset = 0, onBegin } = options;
      onBegin?.({ offset });
      const expected = Math.max(length - offset, 0);
      return exactLength(once(bytes.subarray(offset)), { expected, what: path });
    },
    close: () => base.close(),
  };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Buffer> {
  if (bytes.length > 0) yield Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
