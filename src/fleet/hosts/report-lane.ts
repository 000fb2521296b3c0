// One queue of reports whose batches are committed one after the other: the first of a batch waits a moment for others, and a
// batch that is full waits for nobody. Several lanes commit beside one another; what a batch does is its committer's.
import type { Clock } from '../../platform/time/clock.js';
import type { ReportVerdict, TakenReport } from './report-plan.js';

export interface WaitingReport {
  readonly taken: TakenReport;
  readonly answer: (verdict: ReportVerdict) => void;
}

export interface LaneOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  /** Ends the gathering, and nothing else: what was taken is committed. */
  readonly closing: AbortSignal;
  /** Answers each report of the batch, and never rejects. */
  readonly commit: (batch: readonly WaitingReport[]) => Promise<void>;
}

/** How long the first of a batch waits for others; with the commit behind it, less than 50 ms. */
const gatherMs = 20;
const maxBatch = 256;

export class ReportLane {
  readonly #options: LaneOptions;
  #queue: WaitingReport[] = [];
  #running: Promise<void> | undefined;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#queue.length;
  }

  add(waiting: WaitingReport): void {
    this.#queue.push(waiting);
    this.#running ??= this.#run();
  }

  /** Resolves when all that was added is answered. */
  async drained(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, closing, commit } = this.#options;
    while (this.#queue.length > 0) {
      // The time of a commit has gathered the batch that follows it.
      if (this.#queue.length < maxBatch) await clock.sleep(gatherMs, closing);
      await commit(this.#next());
    }
    this.#running = undefined;
  }

  /** One report of each host: the second of two is judged by what the first one left. */
  #next(): WaitingReport[] {
    const batch = new Map<string, WaitingReport>();
    const later: WaitingReport[] = [];
    for (const waiting of this.#queue) {
      const { keyId } = waiting.taken.signed;
      if (batch.size < maxBatch && !batch.has(keyId)) batch.set(keyId, waiting);
      else later.push(waiting);
    }
    this.#queue = later;
    return [...batch.values()];
  }
}
