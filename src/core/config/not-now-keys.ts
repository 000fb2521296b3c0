// The schemas and defaults of the keys `notNow` and `unreachable`: which answers of a program or daemon are a deferral, and
// which show that no worker was reached.
import * as key from './config-keys.js';
import { asGroup } from './findings.js';

const hourMs = 3_600_000;

const exit = key.list(key.whole(1, 255), { min: 1, max: 32 });
const status = key.list(key.whole(200, 599), { min: 1, max: 32 });
const match: key.Key<string> = {
  ...key.textUpTo(1000, 'a regular expression, as "already in progress"'),
  minLength: 1,
};
const workerKeys = { match, for: key.durationFrom(1000, hourMs) };

/** For commands that judge or load policy: the cycle retries them, so they need no `for`. */
export const notNowOfHook = {
  ...key.group({ exit, match }),
  minProperties: 1,
  description: 'a group of keys, as {exit: [75], match: "already in progress"}',
};
export const notNowOfCommand = {
  ...key.group({ exit, ...workerKeys }),
  minProperties: 1,
  description: 'a group of keys, as {exit: [1], match: "already in progress"}',
};
export const notNowOfHttp = {
  ...key.group({ status, ...workerKeys }),
  minProperties: 1,
  description: 'a group of keys, as {status: [409, 500], match: "in progress"}',
};
/** For drivers of workers that answer with a text. */
export const notNowOfText = {
  ...key.group(workerKeys),
  minProperties: 1,
  description: 'a group of keys, as {match: "^NOK busy"}',
};

/** How long a move waits for all deferring workers of a group together. */
const defaultNotNowDuration = '1m';

/** For hooks and the driver `run`: which exit codes and outputs show that the program reached no worker. */
export const unreachableKey = key.nonEmptyGroup(
  {
    exit: key.list(key.whole(1, 255), { min: 1, max: 32 }),
    match: { ...key.textUpTo(1000, 'a regular expression, as "connect failed"'), minLength: 1 },
  },
  '{exit: [1], match: "connect failed"}',
);

/** @param notNow a value of `reset.notNow`. @returns how long a worker may defer, as a duration text; the default if absent */
export function notNowDuration(notNow: unknown): string {
  const { for: time } = asGroup(notNow);
  return typeof time === 'string' ? time : defaultNotNowDuration;
}
