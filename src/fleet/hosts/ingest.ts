// Accepts reports: those that arrive within a moment share one transaction, and each is answered after the commit. If the database
// is unavailable, the whole batch is answered 503; if it refuses one report, only that report fails. Owns the lanes and their
// bounds. report-plan.ts decides what a report changes; commit-reports.ts writes it.
import { isWritError } from '../../core/errors.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import type { FleetStore } from '../store/open-store.js';
import { RowWriter } from '../store/write-rows.js';
import { type CommitContext, commitReports } from './commit-reports.js';
import { slotOf } from './counter-changes.js';
import { readReport } from './read-report.js';
import { ReportLane, type WaitingReport } from './report-lane.js';
import type { ReportVerdict, VerifiedReport } from './report-plan.js';
import { ReportRate } from './report-rate.js';
import { SeenHosts } from './seen-hosts.js';
import type { SignedRequest } from './signed-request.js';

export interface Ingest {
  /** Adds a report after the verification of its signature and digest. Resolves after the commit. Never rejects. */
  take(signed: SignedRequest, body: Uint8Array): Promise<ReportVerdict>;
  /** Resolves when every accepted report is answered and every keepalive is written. */
  close(): Promise<void>;
}

export interface IngestOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Rate above which hosts are granted longer intervals. */
  readonly maxReportsPerSecond?: number;
  /** Called after each transaction. */
  readonly onBatch?: (batch: CommittedBatch) => void;
}

export interface CommittedBatch {
  readonly reports: number;
  readonly durationMs: number;
  readonly result: 'stored' | 'failed';
}

/**
 * Number of concurrent batches. Each has the hosts of its own slots, so that batches change neither the same rows nor the same
 * counters, and none waits for the flush of another. An embedded store has one writer.
 */
const lanesOf = { embedded: 1, postgres: 4 } as const;
/** A report beyond this bound is answered 503 at once, because a long queue would answer it too late anyway. */
const maxQueue = 20_000;
/** Less than the 10 s by which a crash may set back the last-seen time of a host. */
const seenEveryMs = 5_000;
/** Throughput of one server on two cores (docs/performance.md). */
export const defaultReportsPerSecond = 2_000;

interface ReadReport {
  readonly taken: VerifiedReport;
  readonly answer: WaitingReport['answer'];
}

/** @returns an ingest that starts a batch at the first report. No batch runs before that. */
export function createIngest(store: FleetStore, options: IngestOptions): Ingest {
  return new BatchedIngest(store, options);
}

class BatchedIngest implements Ingest {
  readonly #options: IngestOptions;
  readonly #context: Omit<CommitContext, 'factor'>;
  readonly #rate: ReportRate;
  readonly #closing = new AbortController();
  readonly #lanes: readonly ReportLane[];
  #seenWrites: Promise<void> | undefined;

  constructor({ db, kind }: FleetStore, options: IngestOptions) {
    this.#options = options;
    const { clock } = options;
    const closing = this.#closing.signal;
    const commit = (batch: readonly WaitingReport[]): Promise<void> => this.#commitNext(batch);
    this.#lanes = Array.from({ length: lanesOf[kind] }, () => new ReportLane({ clock, closing, commit }));
    this.#rate = new ReportRate(options.maxReportsPerSecond ?? defaultReportsPerSecond);
    this.#context = { db, writer: new RowWriter(), seen: new SeenHosts() };
  }

  take(signed: SignedRequest, body: Uint8Array): Promise<ReportVerdict> {
    const receivedAtMs = this.#options.clock.nowMs();
    // Count refused reports too. Otherwise an overloaded server would not lengthen the intervals.
    this.#rate.count(receivedAtMs);
    const queued = this.#lanes.reduce((sum, { size }) => sum + size, 0);
    if (queued >= maxQueue || this.#closing.signal.aborted) return Promise.resolve({ kind: 'unavailable' });
    const lane = this.#lanes[slotOf(signed.keyId) % this.#lanes.length];
    return new Promise((answer) => lane?.add({ signed, body, receivedAtMs, answer }));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#lanes.map((lane) => lane.drained()));
    await this.#seenWrites;
    await this.#writeSeen();
  }

  async #commitNext(batch: readonly WaitingReport[]): Promise<void> {
    const read = batch.flatMap((waiting) => this.#read(waiting));
    if (read.length > 0) await this.#commit(read);
    if (this.#context.seen.size > 0) this.#seenWrites ??= this.#writeSeenSoon();
  }

  /** @returns an empty list for an invalid body, which is answered here; the other reports of its batch are committed */
  #read({ signed, body, receivedAtMs, answer }: WaitingReport): readonly ReadReport[] {
    try {
      const read = readReport(body);
      if (read.kind === 'read') return [{ taken: { signed, report: read.data, receivedAtMs }, answer }];
      answer({ kind: 'refused', code: 'FLEET_REPORT_INVALID', reason: read.reason });
    } catch (error) {
      this.#options.log.error({ err: error }, 'a report could not be read');
      answer({ kind: 'unavailable' });
    }
    return [];
  }

  async #commit(batch: readonly ReadReport[]): Promise<void> {
    const startMs = this.#options.clock.monotonicMs();
    const notifyBatch = (result: CommittedBatch['result']): void => {
      const durationMs = this.#options.clock.monotonicMs() - startMs;
      this.#options.onBatch?.({ reports: batch.length, durationMs, result });
    };
    try {
      const taken = batch.map((one) => one.taken);
      const verdicts = await commitReports({ ...this.#context, factor: this.#rate.factor }, taken);
      notifyBatch('stored');
      for (const [at, verdict] of verdicts.entries()) batch[at]?.answer(verdict);
    } catch (error) {
      notifyBatch('failed');
      // Retry one by one only if the database refused the rows, because then a single report can be the cause.
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
