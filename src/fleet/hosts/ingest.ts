// Takes reports in: those that come within a moment share one transaction, and each is answered behind its commit. A batch
// that the database cannot take is answered 503, each of it; a report that it does not want fails alone. Owns the queue
// and its bounds; what a report does is report-plan's, how it is written commit-reports'.
import { isWritError } from '../../core/errors.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import type { FleetStore } from '../store/open-store.js';
import { RowWriter } from '../store/write-rows.js';
import { type CommitContext, commitReports } from './commit-reports.js';
import { readReport } from './read-report.js';
import type { ReportVerdict, TakenReport } from './report-plan.js';
import { ReportRate } from './report-rate.js';
import { SeenHosts } from './seen-hosts.js';
import type { SignedRequest } from './signed-request.js';

export interface Ingest {
  /** Of a request whose signature holds; resolves behind the commit, and never rejects. */
  take(signed: SignedRequest, body: Uint8Array): Promise<ReportVerdict>;
  /** Ends when all that was taken is answered, and every keepalive is written. */
  close(): Promise<void>;
}

export interface IngestOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Of the reports that may come in a second: hosts are granted longer intervals beyond it. */
  readonly maxReportsPerSecond?: number;
  /** Hears of each transaction. */
  readonly onBatch?: (batch: CommittedBatch) => void;
}

export interface CommittedBatch {
  readonly reports: number;
  readonly durationMs: number;
  readonly result: 'stored' | 'failed';
}

interface Waiting {
  readonly taken: TakenReport;
  readonly answer: (verdict: ReportVerdict) => void;
}

/** How long the first of a batch waits for others; with the commit behind it, less than 50 ms. */
const gatherMs = 20;
const maxBatch = 256;
/** Beyond it a report is answered 503 at once: a queue that grows is answered too late anyway. */
const maxQueue = 20_000;
/** Less than the 10 s of last-seen that may be lost. */
const seenEveryMs = 5_000;
/** What one server on two cores takes in (docs/performance.md). */
export const defaultReportsPerSecond = 2_000;

export function createIngest(store: FleetStore, options: IngestOptions): Ingest {
  return new BatchedIngest(store, options);
}

class BatchedIngest implements Ingest {
  readonly #options: IngestOptions;
  readonly #context: Omit<CommitContext, 'factor'>;
  readonly #rate: ReportRate;
  readonly #closing = new AbortController();
  #queue: Waiting[] = [];
  #batches: Promise<void> | undefined;
  #seenWrites: Promise<void> | undefined;

  constructor({ db }: FleetStore, options: IngestOptions) {
    this.#options = options;
    this.#rate = new ReportRate(options.maxReportsPerSecond ?? defaultReportsPerSecond);
    this.#context = { db, writer: new RowWriter(), seen: new SeenHosts() };
  }

  take(signed: SignedRequest, body: Uint8Array): Promise<ReportVerdict> {
    const read = readReport(body);
    if (read.kind === 'refused')
      return Promise.resolve({ kind: 'refused', code: 'FLEET_REPORT_INVALID', reason: read.reason });
    const receivedAtMs = this.#options.clock.nowMs();
    // Also who is turned away: else a server beyond what it takes would ask nobody to come more seldom.
    this.#rate.count(receivedAtMs);
    if (this.#queue.length >= maxQueue || this.#closing.signal.aborted)
      return Promise.resolve({ kind: 'unavailable' });
    const taken = { signed, report: read.data, receivedAtMs };
    return new Promise((answer) => {
      this.#queue.push({ taken, answer });
      this.#batches ??= this.#runBatches();
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#batches;
    await this.#seenWrites;
    await this.#writeSeen();
  }

  async #runBatches(): Promise<void> {
    while (this.#queue.length > 0) {
      // A batch that is full waits for nobody: the time of its commit has gathered it.
      if (this.#queue.length < maxBatch) await this.#options.clock.sleep(gatherMs, this.#closing.signal);
      await this.#commit(this.#nextBatch());
      if (this.#context.seen.size > 0) this.#seenWrites ??= this.#writeSeenSoon();
    }
    this.#batches = undefined;
  }

  /** One report of each host: the second of two is judged by what the first one left. */
  #nextBatch(): Waiting[] {
    const batch = new Map<string, Waiting>();
    const later: Waiting[] = [];
    for (const waiting of this.#queue) {
      const { keyId } = waiting.taken.signed;
      if (batch.size < maxBatch && !batch.has(keyId)) batch.set(keyId, waiting);
      else later.push(waiting);
    }
    this.#queue = later;
    return [...batch.values()];
  }

  async #commit(batch: readonly Waiting[]): Promise<void> {
    const startMs = this.#options.clock.monotonicMs();
    const tell = (result: CommittedBatch['result']): void => {
      const durationMs = this.#options.clock.monotonicMs() - startMs;
      this.#options.onBatch?.({ reports: batch.length, durationMs, result });
    };
    try {
      const taken = batch.map((one) => one.taken);
      const verdicts = await commitReports({ ...this.#context, factor: this.#rate.factor }, taken);
      tell('stored');
      for (const [at, verdict] of verdicts.entries()) batch[at]?.answer(verdict);
    } catch (error) {
      tell('failed');
      // Only what the database says of the rows themselves can be the fault of one of them.
      const isOfRows = !isWritError(error) || error.code === 'FLEET_STORE_FAILED';
      this.#options.log.error({ err: error, reports: batch.length }, 'reports were not stored');
      if (isOfRows && batch.length > 1) for (const one of batch) await this.#commit([one]);
      else for (const { answer } of batch) answer({ kind: 'unavailable' });
    }
  }

  async #writeSeenSoon(): Promise<void> {
    await this.#options.clock.sleep(seenEveryMs, this.#closing.signal);
    await this.#writeSeen();
    this.#seenWrites = undefined;
  }

  async #writeSeen(): Promise<void> {
    const { db, writer, seen } = this.#context;
    await seen.write(db, writer).catch((error: unknown) => {
      this.#options.log.error({ err: error, hosts: seen.size }, 'keepalives were not stored');
    });
  }
}
