// What a host of a soak was said to have, and for how long nothing is promised: an acknowledged release is never left
// without a reason, one that nobody was told of may be. Owns that judgement; knows no process.
import type { CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import type { CommandRun } from '../soak-commands.js';
import type { UserLine } from './policy-user.js';
import type { PolicyRead } from './read-policy.js';
import type { FaultName } from './soak-host.js';
import type { SoakWorld } from './soak-world.js';

/** For so long after a fault an unacknowledged release may go back: recovery, a nack of its neighbour. */
const unrestMs = 120_000;

export interface AcknowledgedOf {
  readonly world: SoakWorld;
  readonly name: string;
  readonly faults: ReadonlySet<FaultName>;
}

export class Acknowledged {
  readonly #of: AcknowledgedOf;
  /** Serial by bundle that a pull has acknowledged. */
  readonly #floors = new Map<string, number>();
  readonly #activationsMs: number[] = [];
  #unrestAtMs = Number.NEGATIVE_INFINITY;
  #rollbackUntilMs = 0;

  constructor(of: AcknowledgedOf) {
    this.#of = of;
  }

  /** What a pull has said holds from now on. */
  note({ exitCode, json, durationMs }: CommandRun): void {
    const { story, repository } = this.#of.world;
    story.count('pulls');
    story.count(`pulls that ended with ${exitCode ?? 'a kill'}`);
    if (exitCode !== null && ![0, 1, 3, 4, 5, 6, 8].includes(exitCode))
      story.violate(`${this.#of.name}: a pull ended with ${exitCode}: ${JSON.stringify(json)}`);
    if (exitCode !== 0 || json === undefined) return;
    const { bundles = [], outcome } = json as Partial<CycleResult>;
    if (outcome === 'activated') this.#activationsMs.push(durationMs);
    if (bundles.length === 0) story.violate(`${this.#of.name}: a pull without bundles ended with 0`);
    for (const one of bundles) {
      const serial = one.outcome === 'activated' ? one.toSerial : one.fromSerial;
      if (serial === undefined) continue;
      if (repository.release(one.bundle, serial)?.kind === 'good') this.#floors.set(one.bundle, serial);
    }
  }

  /** @returns about how long a pull that activates takes */
  usualPullMs(): number {
    const sorted = this.#activationsMs.slice(-9).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 1500;
  }

  judgeLower({ bundle, from, to }: Extract<UserLine, { type: 'lower' }>): void {
    const { story, repository } = this.#of.world;
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
    if (reasons.length === 0) story.violate(`${what} without a reason`);
    else {
      story.event(`${what}: ${reasons.join(', ')}`);
      story.count(`went to a lower serial: ${reasons[0]}`);
    }
  }

  /** Nothing that was acknowledged may be gone, but for what was withdrawn since. */
  require({ bundles }: PolicyRead): void {
    const { story, repository } = this.#of.world;
    for (const { bundle, serial, tainted } of bundles) {
      const floor = this.#floors.get(bundle);
      if (floor === undefined || tainted || serial >= floor) continue;
      if (repository.release(bundle, floor)?.withdrawn === true) this.#floors.delete(bundle);
      else story.violate(`${this.#of.name}: ${bundle} is at ${serial}, and a pull has acknowledged ${floor}`);
    }
  }

  /** For so long what was acknowledged is left on purpose. */
  forgetFor(timeMs: number): void {
    this.#floors.clear();
    this.#rollbackUntilMs = performance.now() + timeMs;
  }

  forget(): void {
    this.#floors.clear();
  }

  rollbackIsOver(): void {
    // The reader may see it a little later.
    this.#rollbackUntilMs = performance.now() + 3000;
  }

  noteUnrest(): void {
    this.#unrestAtMs = performance.now();
  }
}
