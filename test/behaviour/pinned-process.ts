// Loaded into every recorded `node` before Writ's program (`node --import`): stops its wall clock at the scenario's moment,
// and takes random bytes from a counter, so that keys, signatures, digests and times have equal bytes for both checkouts. Does
// not change the monotonic clock or timers, so deadlines and pauses take real time.
import crypto from 'node:crypto';
import http from 'node:http';
import { syncBuiltinESMExports } from 'node:module';

const nowMs = Number(process.env['BEHAVIOUR_NOW_MS']);
const seed = process.env['BEHAVIOUR_SEED'] ?? '';

if (Number.isSafeInteger(nowMs) && nowMs > 0) {
  stopTheClock();
  countInsteadOfRandom();
}

function stopTheClock(): void {
  const RealDate = Date;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, given: unknown[], newTarget) =>
      Reflect.construct(target, given.length === 0 ? [nowMs] : given, newTarget) as object,
    apply: () => new RealDate(nowMs).toString(),
  });
  RealDate.now = () => nowMs;
  // Node writes the Date header from its own clock, unless the response has one already.
  const emit = http.Server.prototype.emit;
  const withDate = function (this: http.Server, ...event: readonly unknown[]): boolean {
    const response = event[2];
    if (response instanceof http.ServerResponse)
      response.setHeader('Date', new RealDate(nowMs).toUTCString());
    return Reflect.apply(emit, this, event) as boolean;
  };
  http.Server.prototype.emit = withDate as typeof emit;
}

/** Random bytes of each length have their own sequence, so that requests of other lengths do not shift it. */
function countInsteadOfRandom(): void {
  const counts = new Map<number, number>();
  const bytesOf = (size: number): Buffer => {
    const count = (counts.get(size) ?? 0) + 1;
    counts.set(size, count);
    const digest = crypto.createHash('shake256', { outputLength: Math.max(size, 1) });
    return digest.update(`${seed} ${size} ${count}`).digest().subarray(0, size);
  };
  const counted = (size: number, done?: (error: Error | null, bytes: Buffer) => void): Buffer | undefined => {
    if (done === undefined) return bytesOf(size);
    queueMicrotask(() => done(null, bytesOf(size)));
    return undefined;
  };
  crypto.randomBytes = counted as typeof crypto.randomBytes;
  Math.random = () => 0.5;
  syncBuiltinESMExports();
}
