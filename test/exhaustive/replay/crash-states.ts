// Which trees a power cut can leave, for every moment of a recording. Two file systems are modelled:
//
// `posix`: the weakest that POSIX still allows (and that ALICE, Pillai et al., OSDI 2014, found programs to fail on).
// - fsync of a file makes its content and mode durable, and not its name. fsync of a directory makes its own names
//   and mode durable, and neither its own name nor what is in the files. syncfs makes everything before it durable.
// - Whatever is not durable is on the disk or is not, each change by itself: in any directory, in any order. Only what
//   has the same name in the same directory keeps its order: a name is one record, and a later one replaces it.
// - A rename in one directory is whole or not at all (every journaling and copy-on-write file system keeps that;
//   no protocol could stand on less). Between two directories it is two records: the tree may be at both places, at
//   neither, or at one.
// - Content that was not flushed is there, absent, cut in half, or zeros of the right length; also the mode may be lost.
//
// `ext4`: a journal with ordered data (the default of ext4; XFS is like it).
// - Names and modes reach the disk in their order: every cut leaves all of them up to some moment, never before the last
//   flush of anything, which commits the whole journal. Renames are whole, also between directories.
// - Content of a file that was not flushed itself is absent (its blocks are allocated late), or there up to a block;
//   never zeros. The help of `auto_da_alloc` for a rename over a file is not counted on.
//
// Both: a name, a mode and a link's target are whole. Times are taken as written: nothing is decided by them. What a disk
// breaks by itself (a corrupt sector, an ignored flush) is not a crash.

import type { Seeded } from '../../kit/assert/seeded.js';
import type { DiskRecording, NodeId, PlacedChange, Torn } from '../power/disk-image.js';
import { blockBytes } from '../power/disk-image.js';

export type Profile = 'posix' | 'ext4';

export interface CrashState {
  readonly profile: Profile;
  /** The number of changes before the power cut. */
  readonly moment: number;
  /** The changes that reached the disk. */
  readonly applied: readonly number[];
  readonly torn: ReadonlyMap<number, Torn>;
  /** A description for people. */
  readonly what: string;
}

export interface CrashOptions {
  readonly profile: Profile;
  readonly random: Seeded;
  /** The number of random subsets of losable changes, for each moment. */
  readonly subsets: number;
  /** Flushes to treat as if they had not happened, by index of change: this checks the replay itself. */
  readonly without?: ReadonlySet<number>;
  /** The first moment; 0 by default. */
  readonly from?: number;
}

/** Every state of the recording, with duplicates. A moment follows each change, and one precedes the first. */
export function* crashStates(recording: DiskRecording, options: CrashOptions): Generator<CrashState> {
  const kept = recording.changes.map((change, index) => (options.without?.has(index) ? noFlush : change));
  for (let moment = options.from ?? 0; moment <= kept.length; moment++) {
    const last = kept[moment - 1];
    // A flush reduces the possible states, and an acknowledgement changes the allowed ones.
    if (last === noFlush) continue;
    const states = options.profile === 'posix' ? posixStates : ext4States;
    for (const choice of states(kept.slice(0, moment), options)) {
      yield {
        ...choice,
        profile: options.profile,
        moment,
        applied: [...choice.applied].sort((a, b) => a - b),
      };
    }
  }
}

const noFlush: PlacedChange = { kind: 'acknowledged', operation: -1, label: 'a flush that did not happen' };

interface Choice {
  readonly applied: ReadonlySet<number>;
  readonly torn: ReadonlyMap<number, Torn>;
  readonly what: string;
}

const whole: ReadonlyMap<number, Torn> = new Map();

function isEffect({ kind }: PlacedChange): boolean {
  return kind !== 'flush' && kind !== 'flush-all' && kind !== 'acknowledged';
}

function* posixStates(
  changes: readonly PlacedChange[],
  { random, subsets }: CrashOptions,
): Generator<Choice> {
  const { durable, pending } = divide(changes, flushesInPosix);
  const needs = dependencies(changes, pending);
  const all = new Set([...durable, ...pending]);
  yield { applied: all, torn: whole, what: 'all on the disk' };
  if (pending.length === 0) return;
  yield { applied: new Set(durable), torn: whole, what: 'nothing on the disk that was not flushed' };
  for (const index of pending) {
    const label = changes[index]!.label;
    yield { applied: minus(all, dependents(index, pending, needs)), torn: whole, what: `without ${label}` };
    yield {
      applied: new Set([...durable, ...prerequisites(index, needs)]),
      torn: whole,
      what: `alone ${label}`,
    };
    if (changes[index]!.kind !== 'data') continue;
    for (const how of ['zeros', 'half'] as const) {
      yield { applied: all, torn: new Map([[index, how]]), what: `${how} of ${label}` };
    }
  }
  for (let subset = 0; subset < subsets; subset++)
    yield randomChoice(changes, { durable, pending, needs, random });
}

interface Pending {
  readonly durable: readonly number[];
  readonly pending: readonly number[];
  readonly needs: ReadonlyMap<number, readonly number[]>;
  readonly random: Seeded;
}

function randomChoice(
  changes: readonly PlacedChange[],
  { durable, pending, needs, random }: Pending,
): Choice {
  const applied = new Set(durable);
  const torn = new Map<number, Torn>();
  // Lose few or most changes: losing half of ten finds few violations.
  const share = random.pick([2, 3, 8]);
  const rare = random.once(2);
  for (const index of pending) {
    const chosen = random.once(share) === rare;
    if (!chosen || (needs.get(index) ?? []).some((one) => !applied.has(one))) continue;
    applied.add(index);
    if (changes[index]!.kind === 'data' && random.once(3)) torn.set(index, random.pick(['zeros', 'half']));
  }
  return { applied, torn, what: 'a random part' };
}

/** The changes that are durable at the end of `changes`, and those that may be lost. */
function divide(
  changes: readonly PlacedChange[],
  flushes: (flush: PlacedChange, change: PlacedChange) => boolean,
): { durable: number[]; pending: number[] } {
  const durable: number[] = [];
  const pending: number[] = [];
  for (const [index, change] of changes.entries()) {
    if (!isEffect(change)) continue;
    const isDurable =
      change.kind === 'times' || changes.some((one, at) => at > index && flushes(one, change));
    (isDurable ? durable : pending).push(index);
  }
  return { durable, pending };
}

function flushesInPosix(flush: PlacedChange, change: PlacedChange): boolean {
  if (flush.kind === 'flush-all') return true;
  if (flush.kind !== 'flush') return false;
  if (change.kind === 'entries') return change.effects.every(({ directory }) => directory === flush.node);
  if (change.kind === 'mode') return change.node === flush.node && flush.what === 'all';
  return 'node' in change && change.node === flush.node;
}

/** For each change, the earlier pending changes that name the same record. */
function dependencies(
  changes: readonly PlacedChange[],
  pending: readonly number[],
): ReadonlyMap<number, readonly number[]> {
  const last = new Map<string, number>();
  const needs = new Map<number, number[]>();
  for (const index of pending) {
    const change = changes[index]!;
    if (change.kind !== 'entries') continue;
    const slots = change.effects.map(({ directory, name }) => `${directory}/${name}`);
    needs.set(
      index,
      slots.flatMap((slot) => last.get(slot) ?? []),
    );
    for (const slot of slots) last.set(slot, index);
  }
  return needs;
}

/** A change and all changes that depend on it. */
function dependents(
  index: number,
  pending: readonly number[],
  needs: ReadonlyMap<number, readonly number[]>,
): ReadonlySet<number> {
  const gone = new Set([index]);
  for (const one of pending) if (needs.get(one)?.some((needed) => gone.has(needed))) gone.add(one);
  return gone;
}

/** A change and all changes that it depends on. */
function prerequisites(index: number, needs: ReadonlyMap<number, readonly number[]>): ReadonlySet<number> {
  const found = new Set<number>();
  const add = (one: number): void => {
    found.add(one);
    for (const needed of needs.get(one) ?? []) add(needed);
  };
  add(index);
  return found;
}

function minus(all: ReadonlySet<number>, gone: ReadonlySet<number>): Set<number> {
  return new Set([...all].filter((one) => !gone.has(one)));
}

function* ext4States(changes: readonly PlacedChange[]): Generator<Choice> {
  const { durable, pending } = divide(changes, flushesInExt4);
  const isData = (index: number): boolean => changes[index]!.kind === 'data';
  const data = pending.filter(isData);
  const names = pending.filter((index) => !isData(index));
  const journalled = [...durable, ...names];
  // Both halves of a rename are one operation, and one record of the journal.
  const cuts = [...new Set(names.map((index) => changes[index]!.operation))];
  for (const cut of [-1, ...cuts]) {
    const upTo = names.filter((index) => changes[index]!.operation <= cut);
    const label = `names up to ${changes.find(({ operation }) => operation === cut)?.label ?? 'the last flush'}`;
    yield { applied: new Set([...durable, ...upTo]), torn: whole, what: `${label}, no content` };
    yield { applied: new Set([...durable, ...upTo, ...data]), torn: whole, what: `${label}, all content` };
  }
  for (const node of new Set(data.map((index) => nodeOf(changes[index]!)))) {
    const of = data.filter((index) => nodeOf(changes[index]!) === node);
    const others = data.filter((index) => !of.includes(index));
    const { label } = changes[of[0]!]!;
    yield { applied: new Set([...journalled, ...others]), torn: whole, what: `content lost of ${label}` };
    for (const [place, index] of of.entries()) {
      const { bytes } = changes[index] as { bytes: Buffer };
      const applied = new Set([...journalled, ...others, ...of.slice(0, place + 1)]);
      if (bytes.length > blockBytes)
        yield { applied, torn: new Map([[index, 'first-block']]), what: `a block of ${label}` };
    }
  }
}

function nodeOf(change: PlacedChange): NodeId | undefined {
  return 'node' in change ? change.node : undefined;
}

function flushesInExt4(flush: PlacedChange, change: PlacedChange): boolean {
  if (flush.kind === 'flush-all') return true;
  if (flush.kind !== 'flush') return false;
  return change.kind !== 'data' || change.node === flush.node;
}
