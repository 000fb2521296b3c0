// Holds a body to a least pace: a byte every few seconds, each in a chunk of 15 kB that say nothing, ends no idle time, and would
// take the whole deadline of an archive. Only the time counts in which bytes were waited for: a slow disk is nobody's fault.
import { WritError } from '../../core/errors.js';
import type { Clock } from '../../platform/time/clock.js';

const windowMs = 60_000;
/** Far below any line that an archive could be fetched over. */
const minBytesPerSecond = 1000;

/**
 * @param what is read, for the error
 * @throws WritError DOWNLOAD_TIMEOUT where a minute of waiting has brought less than 1 kB a second
 */
export async function* requireMinimumThroughput(
  chunks: AsyncIterable<Buffer>,
  clock: Pick<Clock, 'monotonicMs'>,
  what: string,
): AsyncGenerator<Buffer> {
  let [waitedMs, actual] = [0, 0];
  let askedAtMs = clock.monotonicMs();
  for await (const chunk of chunks) {
    waitedMs += clock.monotonicMs() - askedAtMs;
    actual += chunk.length;
    if (waitedMs >= windowMs) {
      const expected = Math.floor((waitedMs * minBytesPerSecond) / 1000);
      if (actual < expected) throw tooSlow(what, { waitedMs: Math.round(waitedMs), expected, actual });
      [waitedMs, actual] = [0, 0];
    }
    yield chunk;
    askedAtMs = clock.monotonicMs();
  }
}

function tooSlow(what: string, facts: Record<'waitedMs' | 'expected' | 'actual', number>): WritError {
  const text = `${what} brought ${facts.actual} bytes in ${Math.round(facts.waitedMs / 1000)} s`;
  return new WritError('DOWNLOAD_TIMEOUT', text, { facts: { url: what, ...facts } });
}
