// A daemon in virtual time under a supervisor that records how its processes exit. It reads `access/f` at a notification and
// at its start. That text decides whether it accepts or rejects the release, is busy, or crashes later. It asserts nothing.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Answer, RecordedEnds } from '../../../src/workers/contract/driver.js';
import { type ScriptedDriver, scriptedDriver } from '../workers/scripted-driver.js';

/**
 * The effect of a release on the daemon after `delayMs`: a crash, the end of being busy, or a failing probe. A probe then answers
 * `wrong`, has no answer because an operator stopped the process (`silent`), or none from a running process (`overdue`).
 */
export interface Effect {
  readonly kind: 'good' | 'rejected' | 'crashing' | 'half' | 'busy' | 'wrong' | 'silent' | 'overdue';
  readonly delayMs: number;
}

export interface CrashingDaemon {
  readonly driver: ScriptedDriver;
  /** Exits that the supervisor recorded as abnormal, in order of time. */
  readonly crashes: { readonly atMs: number; readonly serial: number }[];
  /** The text of the policy that the process uses. */
  readonly uses: string | undefined;
  readonly isUp: boolean;
  isBusy(nowMs: number): boolean;
  /** @returns the answer of the probe about this text now */
  probe(active: string | undefined): 'right' | 'wrong' | 'silent' | 'overdue';
  /** Crashes and restarts the process if its time has come. */
  tick(): void;
  stop(): void;
  start(): void;
}

/** @returns the content of a release that causes this effect, as `crashing 2000 7` */
export function textOf(serial: number, { kind, delayMs }: Effect): string {
  return `${kind} ${delayMs} ${serial}`;
}

function effectOf(text: string | undefined): Effect & { readonly serial: number } {
  const [kind = 'good', delayMs = '0', serial = '0'] = (text ?? '').split(' ');
  return { kind: kind as Effect['kind'], delayMs: Number(delayMs), serial: Number(serial) };
}

/**
 * @param readCurrent reads the active policy at a start; undefined if there is none
 * @param crashesAt the kind of release at which it crashes; a daemon with `half` accepts every other release
 */
export function crashingDaemon(
  nowMs: () => number,
  readCurrent: () => string | undefined,
  crashesAt: 'crashing' | 'half' = 'crashing',
): CrashingDaemon {
  const crashes: { readonly atMs: number; readonly serial: number }[] = [];
  const ends: ('abnormal' | 'clean')[] = [];
  const busyOnce = new Set<number>();
  /** By serial, since the first use: neither a notification nor a restart undoes the effect on the probe. */
  const usedSinceMs = new Map<number, number>();
  let [pid, isUp, busyUntilMs] = [100, true, 0];
  let uses: string | undefined;
  let crashAtMs: number | undefined;
  const use = (text: string | undefined): void => {
    uses = text;
    const { kind, delayMs, serial } = effectOf(text);
    if (!usedSinceMs.has(serial)) usedSinceMs.set(serial, nowMs());
    crashAtMs = kind === crashesAt ? nowMs() + delayMs : undefined;
  };
  const begin = (): void => {
    pid += 1;
    driver.processes.set('a', String(pid));
    use(readCurrent());
  };
  const end = (how: 'abnormal' | 'clean'): void => {
    ends.push(how);
    crashAtMs = undefined;
  };
  const answer = (path: string): Answer => {
    if (!isUp) return { kind: 'unreachable', text: 'ECONNREFUSED' };
    const text = readFileSync(join(path, 'access', 'f'), 'utf8');
    const { kind, delayMs, serial } = effectOf(text);
    if (crashesAt === 'half' && kind !== 'half') {
      use(text);
      return { kind: 'confirmed', text: 'ok' };
    }
    if (kind === 'busy' && !busyOnce.has(serial)) {
      busyOnce.add(serial);
      busyUntilMs = nowMs() + delayMs;
    }
    if (nowMs() < busyUntilMs) return { kind: 'unreachable', text: 'busy', notNow: 'yes' };
    if (kind === 'rejected') return { kind: 'refused', text: `line 7 of ${serial}` };
    use(text);
    return { kind: 'confirmed', text: 'ok' };
  };
  const driver = scriptedDriver({ a: () => ({ kind: 'confirmed', text: 'ok' }) });
  driver.processes.set('a', String(pid));
  driver.reset = async (worker, { target }) => {
    driver.notified.push(`${worker} ${target.generation}`);
    return answer(target.path);
  };
  driver.liveness = async () => (isUp ? 'alive' : 'dead');
  // Reads from the mark, so that a new agent repeats a read that the old agent could not store on the disk.
  driver.endsSince = async (_worker, mark): Promise<RecordedEnds> => {
    const since = mark === undefined ? [] : ends.slice(Number(mark));
    const abnormal = since.filter((one) => one === 'abnormal').length;
    return { abnormal, clean: since.length - abnormal, unrecorded: 0, mark: String(ends.length) };
  };
  return {
    driver,
    crashes,
    get uses() {
      return uses;
    },
    get isUp() {
      return isUp;
    },
    isBusy: (atMs) => atMs < busyUntilMs,
    probe: (active) => {
      if (!isUp) return 'silent';
      const { kind, delayMs, serial } = effectOf(uses);
      const isOver = nowMs() >= (usedSinceMs.get(serial) ?? 0) + delayMs;
      if (isOver && (kind === 'wrong' || kind === 'silent' || kind === 'overdue')) return kind;
      return uses === active ? 'right' : 'wrong';
    },
    tick: () => {
      if (!isUp || crashAtMs === undefined || nowMs() < crashAtMs) return;
      crashes.push({ atMs: nowMs(), serial: effectOf(uses).serial });
      end('abnormal');
      begin();
    },
    stop: () => {
      if (!isUp) return;
      isUp = false;
      driver.processes.delete('a');
      end('clean');
    },
    start: () => {
      if (isUp) return;
      isUp = true;
      begin();
    },
  };
}
