// A queue of reports that commits one batch after the other. The first report of a batch waits for more for a moment; a full batch
// is committed at once. Several lanes commit concurrently. The queue holds bytes, because a parsed report takes twenty times as
// much memory.
import type { Clock } from '../../platform/time/clock.js';
import type { ReportVerdict } from './report-plan.js';
import type { SignedRequest } from './signed-request.js';

export interface WaitingReport {
  readonly signed: SignedRequest;
  readonly body: Uint8Array;
  readonly receivedAtMs: number;
  readonly answer: (verdict: ReportVerdict) => void;
}

export interface LaneOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  /** Ends the wait for more reports. Queued reports are still committed. */
  readonly closing: AbortSignal;
  /** Answers each report of the batch. Never rejects. */
  readonly commit: (batch: readonly WaitingReport[]) => Promise<void>;
}

/** How long the first report of a batch waits for others. Wait and commit together take less than 50 ms. */
const gatherMs = 20;
const maxBatch = 256;
/** Bounds the bodies that are parsed for one commit. */
const maxBatchBytes = 2 * 1024 * 1024;

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

  /** Resolves when every added report is answered. */
  async drained(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, closing, commit } = this.#options;
    while (this.#queue.length > 0) {
      // Do not wait for a full batch: its reports came during the previous commit.
      if (this.#queue.length < maxBatch) await clock.sleep(gatherMs, closing);
      await commit(this.#next());
    }
    this.#running = undefined;
  }

  /**
   * Takes the next batch: at most one report of each host, in the order of arrival, because a second report is judged by the result
   * of the first. A report that exceeds the bytes ends the batch: a smaller, later one of the same host must not overtake it.
   */
  #next(): WaitingReport[] {
    const batch = new Map<string, WaitingReport>();
    const later: WaitingReport[] = [];
    let bytes = 0;
    for (const [at, waiting] of this.#queue.entries()) {
      const { keyId } = waiting.signed;
      const isFull =
        batch.size === maxBatch || (batch.size > 0 && bytes + waiting.body.length > maxBatchBytes);
      if (isFull) {
        later.push(...this.#queue.slice(at));
        break;
      }
      if (batch.has(keyId)) later.push(waiting);
      else {
        batch.set(keyId, waiting);
        bytes += waiting.body.length;
      }
    }
    this.#queue = later;
    return [...batch.values()];
  }
}
