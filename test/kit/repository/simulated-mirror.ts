// A mirror of a simulated repository, with its own files, a name and faults.
import { WritError } from '../../../src/core/errors.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { simulatedSource } from './simulated-source.js';

export interface SimulatedMirror extends RepositorySource {
  /** The served files; a test may change them. */
  readonly files: Map<string, Buffer>;
  /** Requests as in the simulator; takeRequests empties the list. */
  takeRequests(): string[];
  /** Thrown by each later request; undefined: requests succeed. */
  fault: WritError | undefined;
}

/** @param files copied at this call, so that later changes of the repository do not matter; none by default */
export function simulatedMirror(
  location: string,
  files: ReadonlyMap<string, Buffer> = new Map(),
): SimulatedMirror {
  const own = new Map(files);
  const requests: string[] = [];
  const source = simulatedSource(own, requests);
  const mirror: SimulatedMirror = {
    ...source,
    location,
    files: own,
    takeRequests: () => requests.splice(0),
    fault: undefined,
    fetch: async (path, options) => {
      const verdict = await source.fetch(path, options);
      if (mirror.fault !== undefined) throw mirror.fault;
      return verdict;
    },
    async *stream(path, options) {
      const chunks = source.stream(path, options);
      if (mirror.fault !== undefined) throw mirror.fault;
      yield* chunks;
    },
  };
  return mirror;
}

/** Copies the current files of the repository to its mirrors; other files of a mirror stay. */
export function upload(files: ReadonlyMap<string, Buffer>, mirrors: readonly SimulatedMirror[]): void {
  for (const mirror of mirrors) for (const [path, bytes] of files) mirror.files.set(path, bytes);
}

/** @returns the error of a mirror that refuses connections */
export function down(): WritError {
  return new WritError('SERVER_UNREACHABLE', 'nobody listens', { facts: { errno: 'ECONNREFUSED' } });
}

/** @returns the error of a mirror that requires a wait before a retry */
export function busy(retryAfterMs: number): WritError {
  return new WritError('SERVER_BUSY', 'come back later', { facts: { retryAfterMs } });
}
