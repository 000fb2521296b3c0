// Asks the probes of groups with `probe.every` again between activations, each group at its own phase, as long as the agent
// runs. Owns when; what an answer means is notify's. Never holds another job up, and never while the host is paused.
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
  /** Asked before each probe: a reload may have replaced it. */
  readonly host: () => Host;
  /** Gives each group its phase, with the group's name. */
  readonly installId: string;
  readonly exclusive: Exclusive;
  /** Something was asked, and may be known again. */
  readonly onAsked: () => void;
  readonly stop: AbortSignal;
  /** For tests: in place of every `probe.every`, which may be no shorter than 30 s. */
  readonly everyMs?: number | undefined;
}

export interface Prober {
  /** Asks at its times until the agent is told to end; never rejects. */
  run(): Promise<void>;
  /** Epoch milliseconds of the last right answer, by the keys of the workers. */
  provenAtMs(): ReadonlyMap<string, number>;
  /** The configuration is another one: so are the times. */
  reloaded(): void;
}

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

/** @returns by the names of the groups: a time that is known stays, for a long job must not let one be missed for ever */
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
    // The clock may have been set back, or the interval made shorter.
    times.set(name, Math.min(known.get(name) ?? next, next));
  }
  return times;
}

const lateProbeGapMs = 5000;

/** @returns when the probe of a group is asked after a way back; Infinity where it is not */
function secondProbeAtMs({ workers }: Ledger, name: string, nowMs: number): number {
  const times = Object.entries(workers).flatMap(([key, { secondProbe, goneAtMs }]) =>
    groupOf(key) === name && goneAtMs === undefined && secondProbe !== undefined ? [secondProbe.atMs] : [],
  );
  const atMs = Math.min(...times);
  // One that is late may be a host that is paused.
  return atMs > nowMs ? atMs : nowMs + lateProbeGapMs;
}

function untilFirst(times: ReadonlyMap<string, number>, nowMs: number): number {
  return Math.max(0, Math.min(maxTimerMs, ...[...times.values()].map((atMs) => atMs - nowMs)));
}

function dueOf(times: ReadonlyMap<string, number>, nowMs: number): string[] {
  return [...times].filter(([, atMs]) => atMs <= nowMs).map(([name]) => name);
}
