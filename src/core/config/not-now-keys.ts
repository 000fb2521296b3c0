// The keys of `notNow` and `unreachable`: how a program or a daemon says that it is busy, or that it reached no worker. Owns their
// schemas and defaults.
import * as key from './config-keys.js';
import { group } from './findings.js';

const hourMs = 3_600_000;

const exit = key.list(key.whole(1, 255), { min: 1, max: 32 });
const status = key.list(key.whole(200, 599), { min: 1, max: 32 });
const match: key.Key<string> = {
  ...key.text(1000, 'a regular expression, as "already in progress"'),
  minLength: 1,
};
const workerKeys = { match, for: key.durationFrom(1000, hourMs) };

/** Of commands that judge or load a policy: they are tried again by the cycle, and need no `for`. */
export const notNowOfHook = {
  ...key.object({ exit, match }),
  minProperties: 1,
  description: 'a group of keys, as {exit: [75], match: "already in progress"}',
};
export const notNowOfCommand = {
  ...key.object({ exit, ...workerKeys }),
  minProperties: 1,
  description: 'a group of keys, as {exit: [1], match: "already in progress"}',
};
export const notNowOfHttp = {
  ...key.object({ status, ...workerKeys }),
  minProperties: 1,
  description: 'a group of keys, as {status: [409, 500], match: "in progress"}',
};
/** Of drivers whose workers answer with a text. */
export const notNowOfText = {
  ...key.object(workerKeys),
  minProperties: 1,
  description: 'a group of keys, as {match: "^NOK busy"}',
};

/** So long a move waits for all workers of a group together that say "not now". */
const defaultNotNowFor = '1m';

/** How a program says that it reached no worker, of hooks and of the driver `run`. */
export const unreachable = key.someOf(
  {
    exit: key.list(key.whole(1, 255), { min: 1, max: 32 }),
    match: { ...key.text(1000, 'a regular expression, as "connect failed"'), minLength: 1 },
  },
  '{exit: [1], match: "connect failed"}',
);

/** @returns for how long a worker of a group may be busy, as a duration. @param notNow of `reset`, whose schema is the driver's */
export function notNowTime(notNow: unknown): string {
  const { for: time } = group(notNow);
  return typeof time === 'string' ? time : defaultNotNowFor;
}
