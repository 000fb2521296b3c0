// Repeats the probes of groups with `probe.every` between activations, each group at its own phase. agent/notify evaluates the
// answers. A probe never blocks another job, and none runs while the host is paused.
import { once } from 'node:events';
import { nextPollAt, phaseMs } from '../../core/cycle/schedule.js';
import { maxTimerMs } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import { askProbeOf } from '../bake/ask-probe.js';
import type { Exclusive } from '../job/exclusive.js';
import { groupOf } from '../notify/worker-ledger.js';
import { probeGapMs } from '../settled/probe-gap-rules.js';
import type { Host } from '../state/host.js';
import type { Ledger } from '../state/ledger.js';
import { isStateVanished } from './vanished-state.js';

export interface ProberOptions {
  /** Called before each probe, because a reload may have replaced the host. */
  readonly host: () => Host;
  /** Determines the phase of each group, together with its name. */
  readonly installId: string;
  readonly exclusive: Exclusive;
  /** Called after each probe. */
  readonly onAsked: () => void;
  readonly stop: AbortSignal;
  /** For tests: replaces every `probe.every`, which is at least 30 s otherwise. */
  readonly everyMs?: number | undefined;
}

export interface Prober {
  /** Runs the due probes until the stop request; never rejects. */
  run(): Promise<void>;
  /** Epoch milliseconds of the last right answer, by the keys of the workers. */
  provenAtMs(): ReadonlyMap<string, number>;
  /** Schedules by the new configuration. */
  reloaded(): void;
}

/** @returns a prober that runs no probe before `run`, and none while the state directory has vanished */
export function createProber(options: ProberOptions): Prober {
  const { stop, host } = options;
  const proven = new Map<string, number>();
  let waiting = new AbortController();
  const ask = async (name: string): Promise<void> => {
    if (isStateVanished(host())) return;
    const { proven: keys, askedAtMs } = await askProbeOf(name, options);
    for (const key of keys) proven.set(key, askedAtMs);
    if (!stop.aborted) options.onAsked();
  };
  return {
    run: async () => {
      let times = new Map<string, number>();
      while (!stop.aborted) {
        waiting = new AbortController();
        const { clock } = host();
        times = timesOf(host(), times, options);
        using sooner = joinSignals(stop, waiting.signal);
        if (times.size === 0) await once(sooner.signal, 'abort');
        else await clock.sleep(untilFirst(times, clock.nowMs()), sooner.signal);
        if (stop.aborted || waiting.signal.aborted) continue;
        for (const name of dueOf(times, clock.nowMs())) {
          times.delete(name);
          await ask(name);
        }
      }
    },
    provenAtMs: () => proven,
    reloaded: () => waiting.abort(),
  };
}

/** @returns the next times by group name. A known time is kept, so that a long job cannot postpone a probe for ever */
function timesOf(
  { config, ledger, clock }: Host,
  known: ReadonlyMap<string, number>,
  { installId, everyMs: shorterMs }: Pick<ProberOptions, 'installId' | 'everyMs'>,
): Map<string, number> {
  const nowMs = clock.nowMs();
  const times = new Map<string, number>();
  for (const group of config.workers) {
    const { name, probe } = group;
    const usualMs = probe?.everyMs === undefined ? undefined : (shorterMs ?? probe.everyMs);
    if (probe === undefined) continue;
    const everyMs = probeGapMs(config, ledger.read(), group, usualMs);
    const repeatAtMs =
      everyMs === undefined
        ? Number.POSITIVE_INFINITY
        : nextPollAt({ nowMs, everyMs, phaseMs: phaseMs(`${installId}/${name}`, everyMs) });
    const next = Math.min(repeatAtMs, secondProbeAtMs(ledger.read(), name, nowMs));
    if (!Number.isFinite(next)) continue;
    // Take the earlier time: the clock may have been set back, or the interval may be shorter now.
    times.set(name, Math.min(known.get(name) ?? next, next));
  }
  return times;
}

const lateProbeGapMs = 5000;

/** @returns the time of the second probe of a group after a restore, in epoch milliseconds; Infinity for none */
function secondProbeAtMs({ workers }: Ledger, name: string, nowMs: number): number {
  const times = Object.entries(workers).flatMap(([key, { secondProbe, goneAtMs }]) =>
    groupOf(key) === name && goneAtMs === undefined && secondProbe !== undefined ? [secondProbe.atMs] : [],
  );
  const atMs = Math.min(...times);
  // A probe can be late because the host is paused.
  return atMs > nowMs ? atMs : nowMs + lateProbeGapMs;
}

function untilFirst(times: ReadonlyMap<string, number>, nowMs: number): number {
  return Math.max(0, Math.min(maxTimerMs, ...[...times.values()].map((atMs) => atMs - nowMs)));
}

function dueOf(times: ReadonlyMap<string, number>, nowMs: number): string[] {
  return [...times].filter(([, atMs]) => atMs <= nowMs).map(([name]) => name);
}
