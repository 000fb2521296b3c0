// The door to V8's settings. One is changed for good: the nursery of new objects stays at its first size, because an agent
// is judged by its memory and a cycle makes many short-lived objects (measured on policy-10k: a peak of 122 MB in
// place of 153, in the same time).
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Keeps the young generation small; called once, before the first cycle of a process. */
export function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}

/** Pieces of a stream that may wait to be freed. */
const maxWaitingBytes = 4_000_000;

/**
 * The bytes of a buffer lie outside of the heap, and go when the nursery is collected; one great file makes so few objects
 * that 35 MB of its pieces wait for that. This brings it about, which takes about a millisecond.
 * @param collect for tests
 * @returns to be told the bytes of every piece that was used
 */
export function createPieceCollector(collect: () => void = nurseryCollector()): (bytes: number) => void {
  let waitingBytes = 0;
  return (bytes) => {
    waitingBytes += bytes;
    if (waitingBytes < maxWaitingBytes) return;
    waitingBytes = 0;
    collect();
  };
}

function nurseryCollector(): () => void {
  let collect: ((options: { readonly type: 'minor' }) => void) | undefined;
  return () => {
    collect ??= exposedCollector();
    collect({ type: 'minor' });
  };
}

/** Only a context that is made while the flag is set has the function: no other code comes by it. */
function exposedCollector(): (options: { readonly type: 'minor' }) => void {
  setFlagsFromString('--expose-gc');
  try {
    return runInNewContext('gc');
  } finally {
    setFlagsFromString('--no-expose-gc');
  }
}
