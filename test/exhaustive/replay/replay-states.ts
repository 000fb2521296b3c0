// Tries the states of a recorded cycle: writes each to a directory in memory, starts a host on it, and checks the invariant.
// Owns the selection and the counts; crash-states.ts finds the states, host-invariant.ts is the invariant.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readActivePolicy } from '../../../src/agent/generations/generation-contents.js';
import { listGenerations, readActive, readGeneration } from '../../../src/agent/generations/generations.js';
import { keptCopyOf, readLastVoucher } from '../../../src/agent/generations/release-records.js';
import { readHistory } from '../../../src/agent/job/history.js';
import { openHost } from '../../../src/agent/startup/open-host.js';
import { prepareHost } from '../../../src/agent/startup/prepare-host.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { HostPaths } from '../../../src/agent/state/paths.js';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { holdInvariant } from '../../kit/assert/host-invariant.js';
import type { Seeded } from '../../kit/assert/seeded.js';
import { fakeClock } from '../../kit/clock/fake-clock.js';
import { type DiskImage, imageDigest, imageOf, writeImage } from '../power/disk-image.js';
import { type CrashState, crashStates, type Profile } from './crash-states.js';
import type { RecordedCycle } from './record-cycle.js';
import { configAt } from './replay-cycles.js';

export interface ReplayOptions {
  readonly profiles: readonly Profile[];
  readonly random: Seeded;
  /** The number of random subsets for each moment. */
  readonly subsets: number;
  /** The number of states to try, chosen at random among distinct ones; all by default. */
  readonly maxStates?: number;
  /** `exact`: states are equal when every byte is. `swept`: the content of staging/ does not count. */
  readonly alike: 'exact' | 'swept';
  readonly without?: ReadonlySet<number>;
  /** States to skip, by digest: those of the unchanged recording. */
  readonly known?: ReadonlySet<string>;
  /** The first moment to try. */
  readonly from?: number;
  /** Stops after this many violations. */
  readonly maxViolations?: number;
}

export interface Violation {
  readonly cycle: string;
  /** The moment, the profile and the description of the state. */
  readonly state: string;
  readonly message: string;
}

export interface ReplayResult {
  /** The number of distinct states that the model allows. */
  readonly found: number;
  readonly tried: number;
  readonly violations: readonly Violation[];
}

interface DistinctState {
  readonly state: CrashState;
  readonly image: DiskImage;
}

export async function replay(cycle: RecordedCycle, options: ReplayOptions): Promise<ReplayResult> {
  const states = [...distinctStates(cycle, options).values()];
  const chosen = choose(states, options);
  const violations: Violation[] = [];
  let tried = 0;
  const memory = openMemory();
  try {
    for (const one of chosen) {
      tried += 1;
      const violation = await tryState(cycle, one, memory);
      if (violation !== undefined) violations.push(violation);
      if (violations.length >= (options.maxViolations ?? Number.POSITIVE_INFINITY)) break;
    }
  } finally {
    fs.rmSync(memory, { recursive: true, force: true });
  }
  return { found: states.length, tried, violations };
}

/** @returns the first of each group of equal states, by digest */
export function distinctStates(
  cycle: RecordedCycle,
  options: ReplayOptions,
): ReadonlyMap<string, DistinctState> {
  const found = new Map<string, DistinctState>();
  for (const profile of options.profiles) {
    for (const state of crashStates(cycle.recording, { ...options, profile })) {
      const image = imageOf(cycle.recording, state.applied, state.torn);
      const without = options.alike === 'swept' ? { without: 'lib/writ/staging/' } : {};
      const digest = `${demands(cycle, state)} ${imageDigest(image, without)}`;
      if (!found.has(digest) && !options.known?.has(digest)) found.set(digest, { state, image });
    }
  }
  return found;
}

/** A key of the requirements on a state: the later the moment, the more of it must be durable or acknowledged. */
function demands(cycle: RecordedCycle, state: CrashState): string {
  return `${isSwapped(cycle, state)} ${state.moment >= cycle.acknowledgedAt}`;
}

/** Whether the flush of the link precedes the state: workers are notified next, so the old policy must not return. */
function isSwapped(cycle: RecordedCycle, { moment }: CrashState): boolean {
  return moment >= cycle.swappedAt;
}

/** Shuffles the states, so that a part of them is a sample of all. */
function choose(
  states: readonly DistinctState[],
  { random, maxStates = states.length }: ReplayOptions,
): DistinctState[] {
  const left = [...states];
  for (let at = left.length - 1; at > 0; at--) {
    const other = random.int(at + 1);
    [left[at], left[other]] = [left[other]!, left[at]!];
  }
  return left.slice(0, maxStates);
}

function openMemory(): string {
  const places = ['/dev/shm', tmpdir()];
  const place = places.find((path) => fs.existsSync(path)) ?? tmpdir();
  return fs.mkdtempSync(join(place, 'writ-replay-'));
}

async function tryState(
  cycle: RecordedCycle,
  { state, image }: DistinctState,
  memory: string,
): Promise<Violation | undefined> {
  const place = fs.mkdtempSync(join(memory, 's-'));
  try {
    writeImage(image, join(place, 'disk'));
    await recovers(cycle, state, place);
    return undefined;
  } catch (error) {
    const last = cycle.recording.changes[state.moment - 1]?.label ?? 'the beginning';
    return {
      cycle: cycle.name,
      state: `${state.profile}, moment ${state.moment} (behind: ${last}): ${state.what}`,
      message: (error instanceof Error ? error.message : String(error)).replaceAll(place, ''),
    };
  } finally {
    fs.rmSync(place, { recursive: true, force: true });
  }
}

async function recovers(cycle: RecordedCycle, state: CrashState, place: string): Promise<void> {
  const { from, to, repairedBy, ends, succeeds, keeps, afterwards, policies } = cycle.expectation;
  const swapped = isSwapped(cycle, state);
  // The run directory is in memory, so it is empty after a power cut.
  const { config, paths } = configAt(cycle.config, join(place, 'disk'), join(place, 'run'));
  // A repair replaces the record of the active release: between two renames a start must restore the old record.
  if (repairedBy === undefined) requireProof(paths);
  const clock = fakeClock({ nowMs: cycle.recordedAtMs, mode: 'skip' });
  const options = { clock, log: silentLog(), version: 'test' };
  await holdInvariant(paths, {
    policies,
    found: swapped ? [to] : [from, to],
    allowed: swapped || repairedBy ? [to] : [from, to],
    open: async () => {
      prepareHost(paths, createDurableFs());
      return withoutFlush(await openHost(config, options));
    },
    ...(succeeds === undefined ? {} : { succeeds }),
    alsoHolds: (host) => {
      requireProof(paths);
      requireMemory(host, cycle.newestGeneration + (repairedBy ? 1 : 0));
      if (swapped) keeps?.(host);
      if (state.moment < cycle.acknowledgedAt) return;
      const notified = readHistory(paths, { limit: 10 }).map(({ result }) => result.cycle);
      for (const one of cycle.notified)
        assert.ok(notified.includes(one), 'what was acknowledged is in the history');
    },
    ends,
    ...(afterwards === undefined ? {} : { afterwards }),
  });
}

/**
 * Requires an intact record of the active release before anything could rebuild it: repair and rollback depend on it.
 */
function requireProof(paths: HostPaths): void {
  for (const { entry, record } of readActivePolicy(paths)?.bundles.values() ?? []) {
    const voucher = readLastVoucher(paths, entry.bundle, entry.tree.release);
    assert.ok(JSON.parse(voucher.toString('utf8')).signed, 'the metadata that vouched is kept');
    const copy = keptCopyOf(paths, { bundle: entry.bundle, release: entry.tree.release }, record);
    for (const file of [copy.archive, ...copy.deltas]) {
      const digest = createHash('sha256').update(fs.readFileSync(file.path)).digest('hex');
      assert.equal(`sha256:${digest}`, file.digest, 'what is kept of it is whole');
    }
  }
}

/** Requires what a start must restore besides the policy: rollback and collection depend on it. */
function requireMemory({ paths, ledger }: Host, newest: number): void {
  assert.equal(
    ledger.read().lastKnownGood,
    readActive(paths)?.number,
    'the active one is the last known good',
  );
  const numbers = listGenerations(paths);
  for (const number of numbers) readGeneration(paths, number);
  assert.ok(
    Math.max(0, ...numbers) <= newest,
    'a start makes no generation where there is nothing to repair',
  );
}

/** Skips flushes, because the disk is in memory and a thousand flushing programs take long. */
function withoutFlush(host: Host): Host {
  return { ...host, durable: { ...host.durable, flushTree: async () => undefined } };
}
