// A random history of one host in virtual time: releases of each kind, operator actions, reboots and kills of the agent.
// Meanwhile the agent polls, reconciles its workers and observes bake times. After each step the rules of ADR 0048 are
// compared with what happened. The caller asserts that no violation was recorded.
import { createBakeTurn } from '../../../src/agent/bake/bake-turn.js';
import { leaveWhenRefused } from '../../../src/agent/cycle/late-refusal.js';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import { createWithdrawnExit } from '../../../src/agent/cycle/withdrawn-exit.js';
import { recordPendingRestore } from '../../../src/agent/daemon/pending-restore.js';
import { createReconciler } from '../../../src/agent/daemon/reconcile-loop.js';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import { exclusiveAlone } from '../../../src/agent/job/exclusive.js';
import { newCycleId } from '../../../src/agent/job/progress.js';
import { noteProbeAnswers } from '../../../src/agent/notify/repeat-probe.js';
import { isProbedAgain } from '../../../src/agent/notify/repeated-probe-rules.js';
import { groupOf } from '../../../src/agent/notify/worker-ledger.js';
import { pause, resume } from '../../../src/agent/select/pause.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { Bake, Ledger } from '../../../src/agent/state/ledger.js';
import type { HookVerdict } from '../../../src/core/cycle/hook-verdict.js';
import { isWritError } from '../../../src/core/errors.js';
import { given } from '../../../src/core/given.js';
import type { Seeded } from '../assert/seeded.js';
import { type CrashingDaemon, crashingDaemon, type Effect, textOf } from './crashing-daemon.js';
import { type TestHost, testHost } from './test-host.js';

const second = 1000;
const stepMs = 2 * second;
const pollMs = 30 * second;
const probeMs = 6 * second;
/** This many wrong answers in a row are a failure. */
const wrongAnswers = 6;
export const historyBakeMs = 60 * second;
/** Outside a bake time the agent reads worker exits only at this interval, and records them with the time of that read. */
const idleReadMs = 60 * second;

export interface HistoryEnd {
  readonly violations: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  /** One line an event, in order of time. */
  readonly lines: readonly string[];
}

const events = [
  ...(['good', 'good', 'good', 'rejected', 'crashing', 'crashing', 'crashing', 'busy'] as const),
  ...(['wrong', 'silent', 'overdue'] as const),
  ...(['full', 'free', 'free'] as const),
  ...(['restart', 'stop', 'start', 'upgrade', 'kill', 'withdraw', 'rollback', 'pause', 'resume'] as const),
  ...(['half', 'half', 'reboot', 'beside', 'beside', 'atOnce', 'late', 'late'] as const),
] as const;

/** Other causes of a worker exit or an agent stop within the bake time of a crashing release. */
const besides = ['restart', 'upgrade', 'reboot', 'kill'] as const;

const verdicts = {
  right: { kind: 'ok', reason: 'exit 0' },
  wrong: { kind: 'refused', reason: 'exit 1' },
  silent: { kind: 'broken', reason: 'timed out', isTimedOut: true },
  overdue: { kind: 'broken', reason: 'timed out', isTimedOut: true },
} as const satisfies Record<ReturnType<CrashingDaemon['probe']>, HookVerdict>;

/**
 * Runs random events on a new host.
 * @param length number of events
 * @returns the violations, the number of each observed case, and the history as text
 */
export async function playHistory(random: Seeded, length: number): Promise<HistoryEnd> {
  const world = new HistoryWorld(random);
  try {
    await world.play(length);
    return { violations: world.violations, counts: Object.fromEntries(world.counts), lines: world.lines };
  } finally {
    world.end();
  }
}

/** Writes that the released reserve file has space for: enough to restore a small policy. */
const reserveWrites = 60;

/** Whether an operation fails on a disk without a free block. Renames and removals succeed. */
function needsSpace(op: string): boolean {
  return op !== 'swap.link:create' && /:write$|:create$|^reserve\.create|append|make|prepare/.test(op);
}

class HistoryWorld {
  readonly violations: string[] = [];
  readonly counts = new Map<string, number>();
  readonly lines: string[] = [];
  readonly #random: Seeded;
  readonly #test: TestHost;
  readonly #daemon: CrashingDaemon;
  /** A second worker of the bundle, in a group of its own. */
  readonly #side: CrashingDaemon;
  readonly #effects = new Map<number, Effect>();
  readonly #withdrawn = new Set<number>();
  /** By serial: epoch milliseconds from which a withdrawal could be in force. */
  readonly #leaving = new Map<number, number>();
  #host: Host;
  #turn: () => Promise<number>;
  #settler: ReturnType<typeof createReconciler>;
  #exit = createWithdrawnExit();
  #serial = 0;
  #polledAtMs = 0;
  #probedAtMs = 0;
  /** Consecutive wrong answers about one release in its bake time. */
  #wrong: { readonly bakeSinceMs: number; readonly times: number } | undefined;
  #isPaused = false;
  /** The publisher withdraws the restored release while an automatic rollback notifies the workers. */
  #isLate = false;
  #isWatching = false;
  /** The events since the active release became active. */
  #since: { readonly serial: number | undefined; readonly what: Set<string> } = {
    serial: 0,
    what: new Set(),
  };
  #isFull = false;
  /** Writes for which the released reserve file still has space. */
  #freeWrites = 0;
  #isReserveUsed = false;
  /** The failure that must cause an automatic rollback. */
  #failing: { readonly serial: number; readonly atMs: number } | undefined;

  constructor(random: Seeded) {
    this.#random = random;
    const daemonOf = (crashesAt: 'crashing' | 'half'): CrashingDaemon =>
      crashingDaemon(
        () => this.#test.clock.nowMs(),
        () => this.#activeText(),
        crashesAt,
      );
    const [daemon, side] = [daemonOf('crashing'), daemonOf('half')];
    [this.#daemon, this.#side] = [daemon, side];
    const { reset } = daemon.driver;
    daemon.driver.reset = async (...notice) => {
      await this.#withdrawLate();
      return reset(...notice);
    };
    this.#test = testHost({
      bundles: [{ name: 'access', bake: { forMs: historyBakeMs, restarts: 2 } }],
      groups: { app: { driver: daemon.driver }, side: { driver: side.driver } },
      observer: {
        before: ({ op }) => {
          if (!this.#isFull || !needsSpace(op)) return;
          this.#freeWrites -= 1;
          if (this.#freeWrites < 0) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
        },
        after: ({ op }) => {
          if (op !== 'reserve.remove') return;
          this.#freeWrites = reserveWrites;
          this.#isReserveUsed = true;
        },
      },
    });
    this.#host = this.#test.host;
    [this.#turn, this.#settler] = this.#startLoops(this.#host);
  }

  end(): void {
    this.#test[Symbol.dispose]();
  }

  async play(length: number): Promise<void> {
    await this.#release({ kind: 'good', delayMs: 0 });
    await this.#pass(historyBakeMs + 10 * second);
    for (let at = 0; at < length; at += 1) {
      await this.#tryEvent(this.#random.pick(events));
      await this.#pass((2 + this.#random.int(60)) * 2 * second);
    }
    // Each delayed decision must be made by the end.
    await this.#happen('free');
    await this.#happen('resume');
    await this.#happen('start');
    await this.#pass(2 * historyBakeMs);
  }

  /** A full disk may refuse an operator's request; other errors fail the test. */
  async #tryEvent(event: (typeof events)[number]): Promise<void> {
    try {
      await this.#happen(event);
    } catch (error) {
      if (!this.#isFull || !isWritError(error) || !error.code.startsWith('DISK_')) throw error;
      this.#note(`${event} is refused: ${error.code}`);
    }
  }

  async #happen(event: (typeof events)[number]): Promise<void> {
    const random = this.#random;
    const short = (1 + random.int(10)) * second;
    switch (event) {
      case 'good':
      case 'rejected':
        return this.#release({ kind: event, delayMs: 0 });
      case 'half':
      case 'crashing':
        return this.#release({ kind: event, delayMs: (1 + random.int(2 * 60)) * second });
      case 'wrong':
      case 'silent':
      case 'overdue':
        return this.#release({ kind: event, delayMs: random.int(30) * second });
      case 'busy':
        return this.#release({ kind: event, delayMs: (5 + random.int(90)) * second });
      case 'full':
        if (this.#isFull) return;
        this.#note('the disk is full');
        this.#isFull = true;
        this.#freeWrites = 0;
        this.#isReserveUsed = false;
        return;
      case 'free':
        if (this.#isFull) this.#note('the disk has space');
        this.#isFull = false;
        return;
      case 'restart':
        this.#note('a person restarts the daemon');
        this.#since.what.add('restart');
        this.#daemon.stop();
        return this.#startDaemon();
      case 'stop':
        this.#note('a person stops the daemon');
        return this.#daemon.stop();
      case 'start':
        if (!this.#daemon.isUp) this.#note('a person starts the daemon');
        return this.#startDaemon();
      case 'upgrade':
        this.#note('the package is upgraded');
        this.#since.what.add('upgrade');
        this.#daemon.stop();
        await this.#pass(short);
        return this.#startDaemon();
      case 'kill':
        return this.#killAgent(short);
      case 'reboot':
        return this.#reboot(short);
      case 'beside':
        return this.#crashBeside(random.pick(besides));
      case 'atOnce':
        return this.#crashAndRestart();
      case 'late':
        this.#isLate = true;
        return this.#release({ kind: 'crashing', delayMs: (5 + random.int(20)) * second });
      case 'withdraw':
        return this.#withdraw();
      case 'rollback':
        return this.#rollBack();
      case 'pause':
        this.#note('a person pauses the host');
        pause(this.#host, { by: 'anna', reason: 'night' });
        this.#isPaused = true;
        return;
      case 'resume':
        if (this.#isPaused) this.#note('a person resumes the host');
        resume(this.#host);
        this.#isPaused = false;
        return;
    }
  }

  async #release(effect: Effect): Promise<void> {
    this.#serial += 1;
    const serial = this.#serial;
    this.#effects.set(serial, effect);
    this.#note(`published ${textOf(serial, effect)}`);
    await this.#test.publish('access', { f: textOf(serial, effect) }, { serial, ...this.#lists() });
  }

  #lists(): { readonly withdrawn?: number[] } {
    return this.#withdrawn.size === 0 ? {} : { withdrawn: [...this.#withdrawn].sort((a, b) => a - b) };
  }

  /** Withdraws the head of the channel and offers the newest older release that a worker accepts. */
  async #withdraw(from = this.#serial): Promise<void> {
    const standing = [...this.#effects.keys()].filter((one) => !this.#withdrawn.has(one));
    const head = standing.at(-1);
    const older = standing.slice(0, -1).filter((one) => one < from);
    const target = older.findLast((one) => this.#effects.get(one)?.kind !== 'rejected');
    if (target === undefined || head === undefined) return;
    const withdrawn = standing.filter((one) => one > target);
    for (const one of withdrawn) this.#withdrawn.add(one);
    this.#note(`withdrew ${withdrawn.join(', ')} for ${target}`);
    const effect = this.#effects.get(target);
    if (effect === undefined) return;
    await this.#test.publish('access', { f: textOf(target, effect) }, { serial: target, ...this.#lists() });
    for (const one of withdrawn) this.#leaving.set(one, this.#now());
  }

  async #rollBack(): Promise<void> {
    const before = this.#activeSerial();
    const { result } = await rollBack(this.#host, { by: 'anna', signal: new AbortController().signal });
    this.#note(`a person rolls back: ${before} -> ${this.#activeSerial()} ${result.outcome}`);
  }

  /** Kills the agent; its supervisor starts it again after `awayMs`. */
  async #killAgent(awayMs: number): Promise<void> {
    // The start of an agent on a full disk has its own test.
    await this.#happen('free');
    this.#note('the agent is killed');
    this.#since.what.add('kill');
    for (let passedMs = 0; passedMs < awayMs; passedMs += second) {
      await this.#test.clock.advance(second);
      this.#tick();
    }
    await this.#startAgent();
  }

  #tick(): void {
    this.#daemon.tick();
    this.#side.tick();
  }

  /** Stops the workers, changes the boot identity, and starts the workers before the agent. */
  async #reboot(awayMs: number): Promise<void> {
    await this.#happen('free');
    this.#note('the host reboots in order');
    this.#since.what.add('reboot');
    const wereUp = [this.#daemon, this.#side].filter(({ isUp }) => isUp);
    for (const one of wereUp) one.stop();
    await this.#test.clock.advance(awayMs);
    const ledger = this.#ledger();
    const { bakes, runs } = ledger;
    const before = <T extends object>(all: Readonly<Record<string, T>> | undefined) =>
      all &&
      Object.fromEntries(Object.entries(all).map(([key, one]) => [key, { ...one, bootId: 'a boot before' }]));
    this.#host.ledger.write({ ...ledger, ...given({ bakes: before(bakes), runs: before(runs) }) } as Ledger);
    for (const one of wereUp) one.start();
    await this.#startAgent();
  }

  /** Publishes a crashing release; within its bake time another event ends its process or the agent. */
  async #crashBeside(what: (typeof besides)[number]): Promise<void> {
    await this.#release({ kind: 'crashing', delayMs: (5 + this.#random.int(20)) * second });
    await this.#passUntilActive();
    await this.#pass(this.#random.int(3) * stepMs);
    await this.#happen(what);
  }

  /** An operator restarts a daemon at the moment of its crash, so that one read finds both exits. */
  async #crashAndRestart(): Promise<void> {
    const delayMs = 5 * second;
    await this.#release({ kind: 'crashing', delayMs });
    await this.#passUntilActive();
    if (this.#activeSerial() !== this.#serial) return;
    await this.#test.clock.advance(delayMs);
    this.#daemon.tick();
    await this.#happen('restart');
  }

  async #passUntilActive(): Promise<void> {
    for (let steps = 0; steps < 20 && this.#activeSerial() !== this.#serial; steps += 1)
      await this.#pass(stepMs);
  }

  /** Withdraws a release during a restore: the restored release too, if the publisher has an older one. */
  async #withdrawLate(): Promise<void> {
    const serial = this.#activeSerial();
    if (!this.#isLate || !this.#isWatching || serial === undefined) return;
    this.#isLate = false;
    this.#count('withdrawals in a restore');
    await this.#withdraw(this.#random.pick([serial, this.#serial]));
  }

  async #startAgent(): Promise<void> {
    this.#host = this.#test.reopen();
    this.#exit = createWithdrawnExit();
    [this.#turn, this.#settler] = this.#startLoops(this.#host);
    const { restored } = await startHost(this.#host, {
      cycle: newCycleId(),
      signal: new AbortController().signal,
    });
    if (restored !== undefined) this.#restored(restored);
  }

  #startLoops(host: Host): [() => Promise<number>, ReturnType<typeof createReconciler>] {
    const turn = createBakeTurn({
      ...{ host: () => host, exclusive: exclusiveAlone, stop: new AbortController().signal },
      onRestored: (end) => this.#restored(end),
      onNews: () => undefined,
    });
    const settler = createReconciler({
      isBaking: () => host.ledger.read().bakes !== undefined,
      onRefused: leaveWhenRefused(() => undefined),
    });
    return [turn, settler];
  }

  #restored({ result }: CycleEnd): void {
    // After a failed rollback the first problem is the block; its cause follows.
    const problem = result.problems.find(({ facts }) => facts['serial'] !== undefined);
    const serial = Number(problem?.facts['serial']);
    if (result.outcome === 'blocked')
      this.#violate(`the rollback from ${serial} failed: ${problem?.message}`);
    this.#note(`restored from ${serial}: ${problem?.message}`);
    this.#count('restores');
    this.#count(`restores of ${this.#effects.get(serial)?.kind}`);
    for (const what of this.#since.serial === serial ? this.#since.what : [])
      this.#count(`restores after a ${what} in the same bake time`);
    const kind = this.#effects.get(serial)?.kind;
    if (kind !== 'crashing' && kind !== 'half' && kind !== 'wrong' && kind !== 'overdue')
      this.#violate(`${serial}, which is ${kind}, was rolled back: ${problem?.message}`);
  }

  async #pass(forMs: number): Promise<void> {
    for (let passedMs = 0; passedMs < forMs; passedMs += stepMs) {
      await this.#test.clock.advance(stepMs);
      this.#tick();
      this.#noteFailures();
      if (this.#now() - this.#polledAtMs >= pollMs) await this.#poll();
      await recordPendingRestore({
        ...{ host: () => this.#host, stop: new AbortController().signal },
        ...{ note: () => undefined, onChange: () => undefined },
      });
      await this.#settler.runRound(this.#host, { signal: new AbortController().signal, loader: undefined });
      this.#askProbe();
      this.#isWatching = true;
      await this.#turn();
      this.#isWatching = false;
      this.#judge();
    }
  }

  /** Probes as the agent does within a bake time; the simulated daemon answers instead of a command. */
  #askProbe(): void {
    const { workers, bakes } = this.#ledger();
    const [group] = this.#host.groups;
    const about = Object.entries(workers).filter(
      ([key, one]) => groupOf(key) === 'app' && isProbedAgain(one),
    );
    const isDue = this.#now() - this.#probedAtMs >= probeMs;
    if (group === undefined || bakes === undefined || about.length === 0 || !isDue) return;
    this.#probedAtMs = this.#now();
    const answer = this.#daemon.probe(this.#activeText());
    this.#count(`probe ${answer}`);
    const report = { verdict: verdicts[answer], text: '', durationMs: 0 };
    const isOverdue = answer === 'overdue';
    noteProbeAnswers(this.#host, group, [{ about: new Map(about), report, isOverdue }]);
    this.#countWrong(answer, bakes['access']);
  }

  /** Starts the daemon. A new process ends a row of wrong answers. */
  #startDaemon(): void {
    if (!this.#daemon.isUp) this.#wrong = undefined;
    this.#daemon.start();
  }

  #countWrong(answer: keyof typeof verdicts, bake: Bake | undefined): void {
    if (answer === 'silent') return;
    const { serial, startedAtMs: bakeSinceMs } = bake ?? {};
    if (answer === 'right' || bakeSinceMs === undefined || serial !== this.#activeSerial()) {
      this.#wrong = undefined;
      return;
    }
    const times = (this.#wrong?.bakeSinceMs === bakeSinceMs ? this.#wrong.times : 0) + 1;
    this.#wrong = { bakeSinceMs, times };
    if (serial !== undefined && times >= wrongAnswers)
      this.#failing = this.#failing ?? { serial, atMs: this.#now() };
  }

  async #poll(): Promise<void> {
    this.#polledAtMs = this.#now();
    this.#count('polls');
    const before = this.#activeSerial();
    const result = await this.#test.pullOn(this.#host);
    const { outcome, problems } = result;
    const between = this.#activeSerial();
    const left = await this.#exit.afterCycle(this.#host, { result }, new AbortController().signal);
    if (left !== undefined) this.#note(`left ${between}: ${left.result.outcome}`);
    const after = this.#activeSerial();
    if (before !== after || (outcome !== 'unchanged' && outcome !== 'deferred'))
      this.#note(`poll: ${before} -> ${after} ${outcome} ${problems[0]?.code ?? ''}`);
    if (before !== after) this.#count('moves');
    // A failed swap notifies the workers again, so that a row of wrong answers ends.
    if (outcome === 'rolled-back') this.#wrong = undefined;
  }

  /** Applies the rule to the real crashes: the bake time must have more abnormal exits than an equal time before the swap. */
  #noteFailures(): void {
    const serial = this.#activeSerial();
    const bake = this.#ledger().bakes?.['access'];
    if (this.#since.serial !== serial) this.#since = { serial, what: new Set() };
    if (serial === undefined || bake?.serial !== serial) {
      this.#failing = undefined;
      return;
    }
    for (const { crashes } of [this.#daemon, this.#side]) this.#noteExcess(crashes, serial, bake);
  }

  #noteExcess(crashes: CrashingDaemon['crashes'], serial: number, bake: Bake): void {
    const inBake = crashes.filter((one) => one.serial === serial && one.atMs > bake.startedAtMs);
    const before = crashes.filter(
      (one) => one.atMs <= bake.startedAtMs && one.atMs >= bake.startedAtMs - historyBakeMs - idleReadMs,
    );
    const excess = inBake[before.length];
    if (excess !== undefined) this.#failing = this.#failing ?? { serial, atMs: excess.atMs };
  }

  #judge(): void {
    const now = this.#now();
    const serial = this.#activeSerial();
    if (serial === undefined) return;
    const { bakes, settledReleases = {}, blocked } = this.#ledger();
    const bake = bakes?.['access'];
    const settled = (settledReleases['access'] ?? []).find((one) => one.serial === serial);
    const isSettled = settled !== undefined;
    const isSilent = this.#effects.get(serial)?.kind === 'silent';
    if (settled?.isObserved === true && isSilent)
      this.#violate(`${serial} settled as observed, and its probe gave no answer`);
    const isBaking = bake?.serial === serial && bake.failure === undefined;
    if (!isSettled && !isBaking) {
      this.#count('failed without a rollback target');
      if (this.#hasRollbackTarget(serial) && blocked === undefined)
        this.#violate(`${serial} is active, and neither settled nor baking`);
    }
    const failing = this.#failing;
    const isLate = failing?.serial === serial && now - failing.atMs > 10 * second;
    if (isLate && this.#hasRollbackTarget(serial) && !this.#isReserveExhausted())
      if (blocked === undefined) this.#violate(`${serial} failed, and stays active`);
    this.#judgeWithdrawal(serial, blocked !== undefined);
  }

  #judgeWithdrawal(serial: number, isBlocked: boolean): void {
    const sinceMs = this.#leaving.get(serial);
    if (sinceMs === undefined) return;
    const now = this.#now();
    if (this.#isPaused || isBlocked || this.#isReserveExhausted() || this.#daemon.isBusy(now)) {
      this.#leaving.set(serial, now);
      return;
    }
    if (now - sinceMs > 2 * pollMs + stepMs) this.#violate(`${serial} was withdrawn, and stays active`);
  }

  /** The reserve file suffices for one restore. */
  #isReserveExhausted(): boolean {
    return this.#isFull && this.#isReserveUsed;
  }

  /** Whether an older settled release exists that is not withdrawn. */
  #hasRollbackTarget(serial: number): boolean {
    return (this.#ledger().settledReleases?.['access'] ?? []).some(
      (one) => one.serial !== serial && !this.#withdrawn.has(one.serial),
    );
  }

  #activeText(): string | undefined {
    try {
      return this.#test.read('access/f');
    } catch {
      return undefined;
    }
  }

  #activeSerial(): number | undefined {
    const text = this.#activeText();
    return text === undefined ? undefined : Number(text.split(' ')[2]);
  }

  #ledger(): Ledger {
    return this.#host.ledger.read();
  }

  #now(): number {
    return this.#test.clock.nowMs();
  }

  #note(text: string): void {
    this.lines.push(`${Math.round((this.#now() - Date.UTC(2026, 10, 1)) / second)} s: ${text}`);
  }

  #count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  #violate(text: string): void {
    // A violation that lasts is recorded once.
    if (this.violations.includes(text)) return;
    this.#note(`VIOLATION ${text}`);
    this.violations.push(text);
  }
}
