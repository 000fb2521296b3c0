// A further place of a simulated repository: with files of its own, a name, and faults as a test says.
import { WritError } from '../../../src/core/errors.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { simulatedSource } from './simulated-source.js';

export interface SimulatedMirror extends RepositorySource {
  /** What it serves; a test may change it. */
  readonly files: Map<string, Buffer>;
  /** As of the simulator; emptied by takeRequests. */
  takeRequests(): string[];
  /** Thrown by every request from now on; undefined heals it. */
  fault: WritError | undefined;
}

/** @param files none by default; a copy is served, so that it stays as it is when the repository moves on */
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

/** Copies what the repository has now to its mirrors; what they have of their own under other names stays. */
export function upload(files: ReadonlyMap<string, Buffer>, mirrors: readonly SimulatedMirror[]): void {
  for (const mirror of mirrors) for (const [path, bytes] of files) mirror.files.set(path, bytes);
}

/** @returns the error of a mirror that refuses connections */
export function down(): WritError {
  return new WritError('SERVER_UNREACHABLE', 'nobody listens', { facts: { errno: 'ECONNREFUSED' } });
}

/** @returns the error of a mirror that asks for a retry after this time */
export function busy(retryAfterMs: number): WritError {
  return new WritError('SERVER_BUSY', 'come back later', { facts: { retryAfterMs } });
}
