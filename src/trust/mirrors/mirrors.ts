// The mirrors of one repository: their order, their deadlines and their state while the process runs. Knows no roles, keys or
// digests; the caller verifies what a mirror sends.
import { type ErrorCode, toWritError, WritError } from '../../core/errors.js';
import type { Clock } from '../../platform/time/clock.js';
import { startDeadline } from '../../platform/time/deadline.js';
import { withUrl } from '../sources/fetched-url.js';
import type { RepositorySource } from '../sources/source.js';
import {
  canOtherMirrorHelp,
  errorOfMirror,
  joinFailures,
  type MirrorFailure,
  retryAfterMsOf,
} from './mirror-failures.js';

export interface AttemptOptions {
  /** Timeout for all requests to one mirror in this attempt, in milliseconds. */
  readonly timeoutMs: number;
  /** Timeout while another mirror is left, because a slow mirror must not delay a host for long. */
  readonly patienceMs: number;
  /** `all`: also try mirrors that sent a Retry-After; `due` by default. */
  readonly ask?: 'due' | 'all';
  readonly signal: AbortSignal | undefined;
}

export interface Attempted<Value> {
  readonly value: Value;
  /** URL of the mirror that succeeded. */
  readonly mirror: string;
  /** Failures of the mirrors before it. */
  readonly failures: readonly MirrorFailure[];
}

export interface MirrorStatus {
  readonly url: string;
  /** `used`: the last mirror that sent a file. `failed`: its last attempt failed. */
  readonly state: 'used' | 'failed' | 'idle';
  readonly code?: ErrorCode;
  /** Epoch milliseconds: the first of the consecutive failures. */
  readonly sinceMs?: number;
}

export type Act<Value> = (
  source: RepositorySource,
  signal: AbortSignal,
  others: 'yes' | 'no',
) => Promise<Value>;

export interface Mirrors {
  /**
   * Tries one mirror after the other until `act` succeeds. `act` must end when its signal aborts, and handles what it received from
   * a mirror that failed.
   * @param act is called with whether another mirror is left
   * @throws WritError of a single mirror unchanged; of several, the one with the highest severity, with `facts.mirrors`
   */
  attempt<Value>(act: Act<Value>, options: AttemptOptions): Promise<Attempted<Value>>;
  /**
   * Called if no mirror has a file that the metadata of this one lists: it is tried last for a while. Otherwise a mirror with
   * metadata of some days ago could block updates forever: its files are not on other mirrors any more, and it withholds them.
   */
  leave(source: RepositorySource): void;
  /** The mirror that is tried first now. */
  preferred(): RepositorySource;
  status(): readonly MirrorStatus[];
  close(): Promise<void>;
}

/** How long a mirror is tried last after a failure; then the order of the configuration applies again. */
const restMs = 600_000;

interface Mirror {
  readonly source: RepositorySource;
  state: MirrorStatus['state'];
  code?: ErrorCode | undefined;
  sinceMs?: number | undefined;
  /** Monotonic milliseconds, as `quietUntilMs`. */
  restsUntilMs: number;
  quietUntilMs: number;
}

/** @param sources of the same repository, in the order of preference */
export function openMirrors(
  sources: readonly [RepositorySource, ...RepositorySource[]],
  clock: Clock,
): Mirrors {
  const [first, ...others] = sources.map(newMirror);
  const mirrors = [first as Mirror, ...others];
  return {
    attempt: (act, options) => attemptEach(mirrors, clock, act, options),
    leave: (source) => {
      const left = mirrors.find((one) => one.source === source);
      // Longer than for mirrors that only failed.
      if (left !== undefined) left.restsUntilMs = clock.monotonicMs() + 2 * restMs;
    },
    preferred: () => (inOrder(mirrors, clock)[0] ?? (first as Mirror)).source,
    status: () => mirrors.map(statusOf),
    close: async () => {
      await Promise.all(mirrors.map(({ source }) => source.close()));
    },
  };
}

function newMirror(source: RepositorySource): Mirror {
  return { source, state: 'idle', restsUntilMs: 0, quietUntilMs: 0 };
}

async function attemptEach<Value>(
  mirrors: readonly Mirror[],
  clock: Clock,
  act: Act<Value>,
  options: AttemptOptions,
): Promise<Attempted<Value>> {
  const order = inOrder(mirrors, clock);
  const asked = options.ask === 'all' ? order : withoutDelayed(order, clock);
  const failures: MirrorFailure[] = [];
  for (const [index, mirror] of asked.entries()) {
    const isLast = index === asked.length - 1;
    const timeoutMs = isLast ? options.timeoutMs : Math.min(options.timeoutMs, options.patienceMs);
    const deadline = startDeadline(timeoutMs, options.signal);
    const { location } = mirror.source;
    try {
      const value = await act(mirror.source, deadline.signal, isLast ? 'no' : 'yes');
      recordUse(mirrors, mirror);
      return { value, mirror: location, failures };
    } catch (thrown) {
      const error = toWritError(withUrl(errorOfMirror(thrown, deadline.signal, options.signal), location));
      if (!canOtherMirrorHelp(error)) throw error;
      recordFailure(mirror, error, clock);
      failures.push({ mirror: location, error });
    } finally {
      deadline.end();
    }
  }
  throw joinFailures([...failures, ...skippedMirrors(order, asked, clock)]);
}

/** The order of the configuration, followed by mirrors that failed recently, the last failure last. */
function inOrder(mirrors: readonly Mirror[], clock: Clock): readonly Mirror[] {
  const nowMs = clock.monotonicMs();
  const rests = (mirror: Mirror): boolean => mirror.restsUntilMs > nowMs;
  const resting = mirrors.filter(rests).sort((a, b) => a.restsUntilMs - b.restsUntilMs);
  return [...mirrors.filter((one) => !rests(one)), ...resting];
}

/** Leaves out mirrors within a Retry-After while there is another one. */
function withoutDelayed(mirrors: readonly Mirror[], clock: Clock): readonly Mirror[] {
  const due = mirrors.filter((one) => quietMs(one, clock) === 0);
  return due.length === 0 ? mirrors : due;
}

function quietMs({ quietUntilMs }: Mirror, clock: Clock): number {
  return Math.max(quietUntilMs - clock.monotonicMs(), 0);
}

/** The mirrors that were not tried, for the error if all others failed. */
function skippedMirrors(order: readonly Mirror[], asked: readonly Mirror[], clock: Clock): MirrorFailure[] {
  return order
    .filter((one) => !asked.includes(one))
    .map((one) => {
      const retryAfterMs = quietMs(one, clock);
      const { location } = one.source;
      const message = `not asked: it wants to be left alone for ${retryAfterMs} ms more`;
      const error = new WritError('SERVER_BUSY', message, { facts: { url: location, retryAfterMs } });
      return { mirror: location, error };
    });
}

function recordUse(mirrors: readonly Mirror[], used: Mirror): void {
  for (const mirror of mirrors) if (mirror.state === 'used') mirror.state = 'idle';
  Object.assign(used, { ...newMirror(used.source), state: 'used', code: undefined, sinceMs: undefined });
}

function recordFailure(mirror: Mirror, error: WritError, clock: Clock): void {
  const nowMs = clock.monotonicMs();
  if (mirror.state !== 'failed') mirror.sinceMs = clock.nowMs();
  mirror.state = 'failed';
  mirror.code = error.code;
  mirror.restsUntilMs = nowMs + restMs;
  mirror.quietUntilMs = nowMs + (retryAfterMsOf(error) ?? 0);
}

function statusOf({ source, state, code, sinceMs }: Mirror): MirrorStatus {
  const failure = code === undefined || sinceMs === undefined ? {} : { code, sinceMs };
  return { url: source.location, state, ...failure };
}
