// Least and greatest value of every duration and size in a configuration file, and the length of the path of a socket: they
// are texts, so that a schema cannot bound them.
import { maxSocketPathBytes } from '../limits.js';
import { parseDuration, parseSize } from '../names.js';
import { at, type Group, type Placed, valuesAt } from './config-walk.js';
import type { ConfigPath, Finding } from './findings.js';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** By place; `*` is any index. */
const durationBounds: readonly (readonly [place: string, minMs: number, maxMs: number])[] = [
  ['poll.every', 1000, 30 * dayMs],
  ['keep.grace', 0, 30 * dayMs],
  ['refusals.retry', 1000, dayMs],
  ['scrub.every', 10_000, 30 * dayMs],
  ['staleAfter', 1000, 365 * dayMs],
  ['maxStale', 1000, 365 * dayMs],
  ['onStale.timeout', 1, hourMs],
  ['onFresh.timeout', 1, hourMs],
  ['bundles.*.checks.*.timeout', 1, hourMs],
  ['workers.*.settle', 0, dayMs],
  ['workers.*.minInterval', 0, 30 * dayMs],
  ['workers.*.canary.timeout', 1, hourMs],
  ['workers.*.load.timeout', 1, hourMs],
  ['workers.*.reset.timeout', 1, hourMs],
  ['workers.*.reset.deadline', 1, hourMs],
  ['workers.*.probe.timeout', 1, hourMs],
  ['workers.*.probe.deadline', 1, hourMs],
  ['limits.timeouts.connect', 100, 10 * minuteMs],
  ['limits.timeouts.idle', 100, 10 * minuteMs],
  ['limits.timeouts.metadata', 1000, hourMs],
  ['limits.timeouts.refresh', 1000, hourMs],
  ['limits.timeouts.archive', 1000, dayMs],
];

/** The trust store takes a metadata file of more than 16 MB for one that was never put there. */
const sizeBounds: readonly (readonly [place: string, minBytes: number, maxBytes: number])[] = [
  ['scrub.rate', 100_000, 10e9],
  ['bundles.*.checks.*.memory', 1e6, 1e12],
  ['workers.*.canary.memory', 1e6, 1e12],
  ['workers.*.load.memory', 1e6, 1e12],
  ['workers.*.probe.memory', 1e6, 1e12],
  ['limits.metadata.root', 1000, 16e6],
  ['limits.metadata.timestamp', 1000, 16e6],
  ['limits.metadata.snapshot', 1000, 16e6],
  ['limits.metadata.targets', 1000, 16e6],
];

/** @returns every duration and size of the file that is out of its bounds; a text that is none is the schema's */
export function* checkBounds(file: Group): Generator<Finding> {
  for (const [place, minMs, maxMs] of durationBounds) {
    const words = `must be from ${minMs / 1000} to ${maxMs / 1000} seconds`;
    yield* outside(valuesAt(file, place.split('.'), []), {
      parse: parseDuration,
      min: minMs,
      max: maxMs,
      words,
    });
  }
  for (const [place, minBytes, maxBytes] of sizeBounds) {
    const words = `must be from ${minBytes / 1000} kB to ${maxBytes / 1e6} MB`;
    yield* outside(valuesAt(file, place.split('.'), []), {
      parse: parseSize,
      min: minBytes,
      max: maxBytes,
      words,
    });
  }
}

interface Bounds {
  /** @returns undefined for a text that the schema refuses */
  readonly parse: (text: string) => number | undefined;
  readonly min: number;
  readonly max: number;
  readonly words: string;
}

function* outside(values: readonly Placed[], { parse, min, max, words }: Bounds): Generator<Finding> {
  for (const { path, value } of values) {
    const amount = typeof value === 'string' ? parse(value) : undefined;
    if (amount === undefined || (amount >= min && amount <= max)) continue;
    yield at(path, `${words}; it is ${value}`);
  }
}

/** @returns what is wrong with the length of a socket's path */
export function* socketRule(path: string, where: ConfigPath): Generator<Finding> {
  const bytes = Buffer.byteLength(path);
  if (bytes <= maxSocketPathBytes) return;
  // Node 20 binds the name that the kernel cut off, without a word.
  const text = `the socket ${path} has ${bytes} bytes; a socket path has at most ${maxSocketPathBytes}`;
  yield { path: where, at: 'value', text, code: 'SOCKET_PATH_TOO_LONG' };
}
