// Limits the memory of V8. The young generation keeps its initial size, because a cycle creates many short-lived objects
// (measured on policy-10k: a peak of 122 MB in place of 153, in the same time).
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Keeps the young generation small. Call it once, before the first cycle of a process. */
export function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}

/** Bytes of used stream chunks after which a collection runs. */
const maxWaitingBytes = 4_000_000;

/**
 * Frees used stream chunks early by a minor garbage collection, which takes about a millisecond. The bytes of a buffer are
 * outside of the heap and are freed with its object. A large file creates so few objects that 35 MB would wait for that.
 * @param collect replaced in tests
 * @returns a function to call with the number of bytes of every used chunk
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

/** Only a context that is created while the flag is set has the function, so that no other code gets it. */
function exposedCollector(): (options: { readonly type: 'minor' }) => void {
  setFlagsFromString('--expose-gc');
  try {
    return runInNewContext('gc');
  } finally {
    setFlagsFromString('--no-expose-gc');
  }
}
