// Loaded into every recorded `node` before the program of Writ (`node --import`): stops its wall clock at the moment that
// the story says, and takes random bytes from a counter, so that keys, signatures, digests and times are the same bytes
// for both checkouts. Never touches the monotonic clock or timers: deadlines and pauses pass as ever.
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
  // Node itself writes the Date of an answer, from a clock of its own: what is there already it leaves.
  const emit = http.Server.prototype.emit;
  const withDate = function (this: http.Server, ...event: readonly unknown[]): boolean {
    const response = event[2];
    if (response instanceof http.ServerResponse)
      response.setHeader('Date', new RealDate(nowMs).toUTCString());
    return Reflect.apply(emit, this, event) as boolean;
  };
  http.Server.prototype.emit = withDate as typeof emit;
}

/** Bytes of one length come from a row of their own: whoever asks for others in between does not move them. */
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
