// Asks the probes of groups with `probe.every` again between activations, each group at its own phase, as long as the agent
// runs. Owns when; what an answer means is notify's. Never holds another job up, and never while the host is paused.
import { once } from 'node:events';
import { bakeOf, type WorkerGroupConfig } from '../../core/config/config.js';
import { problemOf } from '../../core/cycle/problem.js';
import { nextPollAt, phaseMs } from '../../core/cycle/schedule.js';
import { WritError } from '../../core/errors.js';
import { maxTimerMs } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import { readActive } from '../generations/generations.js';
import type { Exclusive } from '../job/exclusive.js';
import { newCycleId } from '../job/progress.js';
import { recordEvent } from '../job/record.js';
import { openStagingArea } from '../job/staging-area.js';
import { askAgain, noteAnswers, noteUnasked, type RepeatedProbe } from '../notify/repeat-probe.js';
import { groupOf } from '../notify/worker-ledger.js';
import { isPaused } from '../select/pause.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { Ledger } from '../state/ledger.js';
import { isOfDisk } from '../state/state-file.js';
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
    const { proven: keys, askedAtMs } = await askOne(name, options);
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

/** @returns when the probe of a group is asked after a way back; Infinity where it is not */
function secondProbeAtMs({ workers }: Ledger, name: string, nowMs: number): number {
  const times = Object.entries(workers).flatMap(([key, { secondProbe, goneAtMs }]) =>
    groupOf(key) === name && goneAtMs === undefined && secondProbe !== undefined ? [secondProbe.atMs] : [],
  );
  const atMs = Math.min(...times);
  // One that is late may be a host that is paused.
  return atMs > nowMs ? atMs : nowMs + leastProbeGapMs;
}

/** In a bake time a probe is asked so often at least, in parts of it, and no more often than each 5 s. */
const probesInBake = 10;
const leastProbeGapMs = 5000;

/** @returns milliseconds between two questions to the probe of a group; undefined where it is asked in activations alone */
function probeGapMs(
  config: Host['config'],
  ledger: Ledger,
  group: Pick<WorkerGroupConfig, 'uses'>,
  usualMs: number | undefined,
): number | undefined {
  const baking = bakingOf(ledger, group);
  if (baking.length === 0) return usualMs;
  const shares = baking.map((bundle) => bakeOf(config, bundle).forMs / probesInBake);
  const bakingMs = Math.max(leastProbeGapMs, Math.round(Math.min(...shares)));
  return Math.min(usualMs ?? bakingMs, bakingMs);
}

/** @returns the bundles of a group that have a release in its bake time */
function bakingOf({ bakes = {} }: Ledger, { uses }: Pick<WorkerGroupConfig, 'uses'>): string[] {
  return uses.filter((bundle) => bakes[bundle] !== undefined);
}

function untilFirst(times: ReadonlyMap<string, number>, nowMs: number): number {
  return Math.max(0, Math.min(maxTimerMs, ...[...times.values()].map((atMs) => atMs - nowMs)));
}

function dueOf(times: ReadonlyMap<string, number>, nowMs: number): string[] {
  return [...times].filter(([, atMs]) => atMs <= nowMs).map(([name]) => name);
}

/** A proof is as old as its question: its answer may wait for a long job. */
interface AskedProbe extends RepeatedProbe {
  readonly askedAtMs: number;
}

const nothing: AskedProbe = { proven: [], changed: [], askedAtMs: 0 };

/** Beside the jobs, for a probe may hang: whoever pulls or rolls back never waits for it. */
async function askOne(name: string, { host, exclusive, stop }: ProberOptions): Promise<AskedProbe> {
  // Not begun in the middle of a job, whose answer would be thrown away.
  await exclusive(async () => undefined);
  const before = host();
  const group = before.groups.find(({ config }) => config.name === name);
  if (group === undefined) return nothing;
  // A pause does not keep a release that fails: within its bake time the probe is asked all the same.
  const isPausedFor = (): boolean =>
    isPaused(before) && bakingOf(before.ledger.read(), group.config).length === 0;
  const isOver = (): boolean => stop.aborted || host() !== before || isPausedFor();
  if (isOver()) return nothing;
  try {
    const askedAtMs = before.clock.nowMs();
    const asked = await askNow(before, group, stop);
    if (asked === undefined) return nothing;
    return await exclusive(async () => {
      if (isOver()) return nothing;
      const noted = noteAnswers(before, group, asked.answers);
      report(before, asked.cycle, noted);
      return { ...noted, askedAtMs };
    });
  } catch (error) {
    before.log.error({ err: error, group: name }, 'a probe could not be repeated');
    if (!isOfDisk(error)) return nothing;
    const noted = exclusive(async () => (isOver() ? undefined : noteUnasked(before, group, error.message)));
    await noted.catch((cause: unknown) => {
      before.log.error({ err: cause, group: name }, 'a probe without an answer could not be noted');
    });
    return nothing;
  }
}

async function askNow(host: Host, group: WorkerGroup, signal: AbortSignal) {
  const active = readActive(host.paths);
  if (active === undefined) return undefined;
  const cycle = newCycleId();
  const area = openStagingArea(host.paths, host.durable, cycle);
  try {
    const target = { generation: active.number, path: active.path };
    const answers = await askAgain(host, group, { target, staging: area.path(), signal });
    return { answers, cycle };
  } finally {
    area.remove(host.log);
  }
}

/** That it is as before is no news. */
function report(host: Host, cycle: string, { changed }: RepeatedProbe): void {
  const texts = (doubted: 'yes' | 'no'): string[] => [
    ...new Set(changed.filter((one) => one.doubted === doubted).map((one) => one.text)),
  ];
  const problems = texts('yes').map((text) => problemOf(new WritError('PROBE_CHANGED', text)));
  if (problems.length > 0)
    recordEvent(host, { cycle, trigger: 'pending', problems, reason: 'a repeated probe failed' });
  const keys = changed.filter((one) => one.doubted === 'no').map((one) => one.key);
  if (keys.length > 0)
    recordEvent(host, {
      cycle,
      trigger: 'pending',
      problems: [],
      reason: `proved again: ${keys.join(', ')}`,
    });
}
