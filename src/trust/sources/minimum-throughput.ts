// Requires a minimum throughput of a body. A server that sends one byte every few seconds never reaches the idle timeout, and would
// use the whole deadline of an archive. Only the time of waiting for bytes counts, because a slow disk is not a fault of the server.
import { WritError } from '../../core/errors.js';
import type { Clock } from '../../platform/time/clock.js';

const windowMs = 60_000;
/** Far below the throughput of any network over which an archive can be fetched. */
const minBytesPerSecond = 1000;

/**
 * @param what name of the file, for the error
 * @throws WritError DOWNLOAD_TIMEOUT if a minute of waiting has brought less than 1 kB per second
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
