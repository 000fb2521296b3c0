// The mirrors of one repository: which is asked first, when the next one is, and what is remembered of them while
// the process lives. Owns order and deadlines; knows no role, key or digest: who asks judges what a mirror brings.
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
  /** For all that one mirror is asked in this attempt, in milliseconds. */
  readonly timeoutMs: number;
  /** The same while another mirror is left: a slow mirror must not hold a host up for long. */
  readonly patienceMs: number;
  /** `all` asks those too that wanted to be left alone for a while (Retry-After); `due` by default. */
  readonly ask?: 'due' | 'all';
  readonly signal: AbortSignal | undefined;
}

export interface Attempted<Value> {
  readonly value: Value;
  /** The mirror that it came from. */
  readonly mirror: string;
  /** Those that were tried before it. */
  readonly failures: readonly MirrorFailure[];
}

export interface MirrorStatus {
  readonly url: string;
  /** `used`: the last one that something came from. `failed`: when it was last asked. */
  readonly state: 'used' | 'failed' | 'idle';
  readonly code?: ErrorCode;
  /** Epoch milliseconds: since when it fails. */
  readonly sinceMs?: number;
}

export type Act<Value> = (
  source: RepositorySource,
  signal: AbortSignal,
  others: 'yes' | 'no',
) => Promise<Value>;

export interface Mirrors {
  /**
   * Asks one mirror after the other until `act` succeeds. What `act` has kept from one that failed is its own
   * affair; it must end when its signal aborts.
   * @param act is told whether another mirror is left for when this one fails
   * @throws WritError of the only mirror as it is; of several the code that says most, with `facts.mirrors`
   */
  attempt<Value>(act: Act<Value>, options: AttemptOptions): Promise<Attempted<Value>>;
  /**
   * Called when no mirror has what the metadata of this one names: it is asked after all others for a while. Or one that
   * shows a view of days ago, and withholds what nobody else keeps any more, would block updates for ever.
   */
  leave(source: RepositorySource): void;
  /** The one that is asked first now. */
  preferred(): RepositorySource;
  status(): readonly MirrorStatus[];
  close(): Promise<void>;
}

/** One that failed is asked last for so long; then the order of the configuration holds again. */
const restMs = 600_000;

interface Mirror {
  readonly source: RepositorySource;
  state: MirrorStatus['state'];
  code?: ErrorCode | undefined;
  sinceMs?: number | undefined;
  /** Monotonic milliseconds. */
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
      // Longer than those that only failed beside it.
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

/** Those that failed a short while ago come last, the last of them last; otherwise the order of the configuration. */
function inOrder(mirrors: readonly Mirror[], clock: Clock): readonly Mirror[] {
  const nowMs = clock.monotonicMs();
  const rests = (mirror: Mirror): boolean => mirror.restsUntilMs > nowMs;
  const resting = mirrors.filter(rests).sort((a, b) => a.restsUntilMs - b.restsUntilMs);
  return [...mirrors.filter((one) => !rests(one)), ...resting];
}

/** Who asked for quiet gets it while there is another one to ask. */
function withoutDelayed(mirrors: readonly Mirror[], clock: Clock): readonly Mirror[] {
  const due = mirrors.filter((one) => quietMs(one, clock) === 0);
  return due.length === 0 ? mirrors : due;
}

function quietMs({ quietUntilMs }: Mirror, clock: Clock): number {
  return Math.max(quietUntilMs - clock.monotonicMs(), 0);
}

/** When all that were asked have failed, the others are named too. */
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
