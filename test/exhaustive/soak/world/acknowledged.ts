// The releases that a host's pulls have acknowledged. An acknowledged release never goes back without a reason; a release
// without acknowledgement may, for a while after a fault. Owns that decision, without processes.
import type { CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import type { CommandRun } from '../soak-commands.js';
import type { UserLine } from './policy-user.js';
import type { PolicyRead } from './read-policy.js';
import type { FaultName } from './soak-host.js';
import type { SoakWorld } from './soak-world.js';

/**
 * For this time after a fault, a release without acknowledgement may be replaced: by recovery, or after a worker
 * refusal of another bundle.
 */
const unrestMs = 120_000;

export interface AcknowledgedOf {
  readonly world: SoakWorld;
  readonly name: string;
  readonly faults: ReadonlySet<FaultName>;
}

export class Acknowledged {
  readonly #of: AcknowledgedOf;
  /** The acknowledged serial of each bundle. */
  readonly #floors = new Map<string, number>();
  readonly #activationsMs: number[] = [];
  #unrestAtMs = Number.NEGATIVE_INFINITY;
  #rollbackUntilMs = 0;

  constructor(of: AcknowledgedOf) {
    this.#of = of;
  }

  /** Records the serials that a pull has acknowledged. */
  note({ exitCode, json, durationMs }: CommandRun): void {
    const { log, repository } = this.#of.world;
    log.count('pulls');
    log.count(`pulls that ended with ${exitCode ?? 'a kill'}`);
    if (exitCode !== null && ![0, 1, 3, 4, 5, 6, 8].includes(exitCode))
      log.violate(`${this.#of.name}: a pull ended with ${exitCode}: ${JSON.stringify(json)}`);
    if (exitCode !== 0 || json === undefined) return;
    const { bundles = [], outcome } = json as Partial<CycleResult>;
    if (outcome === 'activated') this.#activationsMs.push(durationMs);
    if (bundles.length === 0) log.violate(`${this.#of.name}: a pull without bundles ended with 0`);
    for (const one of bundles) {
      const serial = one.outcome === 'activated' ? one.toSerial : one.fromSerial;
      if (serial === undefined) continue;
      if (repository.release(one.bundle, serial)?.kind === 'good') this.#floors.set(one.bundle, serial);
    }
  }

  /** @returns the usual duration of a pull that activates a release, in milliseconds */
  usualPullMs(): number {
    const sorted = this.#activationsMs.slice(-9).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 1500;
  }

  judgeLower({ bundle, from, to }: Extract<UserLine, { type: 'lower' }>): void {
    const { log, repository } = this.#of.world;
    const nowMs = performance.now();
    const left = repository.release(bundle, from);
    const isAcknowledged = (this.#floors.get(bundle) ?? 0) > to;
    const reasons = [
      left?.withdrawn === true && 'withdrawn',
      nowMs < this.#rollbackUntilMs && 'rollback by hand',
      this.#of.faults.has('damage') && 'damage',
      !isAcknowledged && left?.kind === 'nacked' && 'nack',
      !isAcknowledged && nowMs - this.#unrestAtMs < unrestMs && 'not acknowledged, after unrest',
    ].filter((reason) => reason !== false);
    const what = `${this.#of.name}: ${bundle} went from ${from} to ${to}`;
    if (reasons.length === 0) log.violate(`${what} without a reason`);
    else {
      log.event(`${what}: ${reasons.join(', ')}`);
      log.count(`went to a lower serial: ${reasons[0]}`);
    }
  }

  /** Requires each acknowledged release, unless it was withdrawn since. */
  require({ bundles }: PolicyRead): void {
    const { log, repository } = this.#of.world;
    for (const { bundle, serial, tainted } of bundles) {
      const floor = this.#floors.get(bundle);
      if (floor === undefined || tainted || serial >= floor) continue;
      if (repository.release(bundle, floor)?.withdrawn === true) this.#floors.delete(bundle);
      else log.violate(`${this.#of.name}: ${bundle} is at ${serial}, and a pull has acknowledged ${floor}`);
    }
  }

  /** Suspends the requirement for `timeMs`, for a rollback on purpose. */
  forgetFor(timeMs: number): void {
    this.#floors.clear();
    this.#rollbackUntilMs = performance.now() + timeMs;
  }

  forget(): void {
    this.#floors.clear();
  }

  rollbackIsOver(): void {
    // A reader may find the older release a little later.
    this.#rollbackUntilMs = performance.now() + 3000;
  }

  noteUnrest(): void {
    this.#unrestAtMs = performance.now();
  }
}
