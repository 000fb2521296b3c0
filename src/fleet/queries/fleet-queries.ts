// The queries of a fleet's store in one object, for the API, the pages and the commands on the server's own machine.
// Reads only.
import type { Kysely } from 'kysely';
import type {
  FleetSummary,
  HostDetail,
  HostsPage,
  LogPage,
  ReleaseReport,
  Role,
  WaitFacts,
} from '../../core/fleet/answers.js';
import type { HistoryPage } from '../../core/fleet/history-answers.js';
import { signedSerial } from '../../core/fleet/signed-releases.js';
import { given } from '../../core/given.js';
import type { Clock } from '../../platform/time/clock.js';
import { readIntervals } from '../intervals/interval-query.js';
import { openRepositoryViews } from '../repositories/repository-views.js';
import type { Tables } from '../store/tables.js';
import { findHost, type HostsQuestion, readHost, readHosts } from './host-pages.js';
import { readAccepting } from './host-where.js';
import { type ReleaseQuestion, readRelease } from './release-query.js';
import { createSummaryQuery } from './summary-query.js';
import { readWait, type WaitQuestion } from './wait-query.js';
import { addSignedFacts } from './wait-signed.js';

export interface FleetQueries {
  summary(role: Role): Promise<FleetSummary>;
  hosts(question: HostsQuestion, role: Role): Promise<HostsPage>;
  host(name: string, role: Role): Promise<HostDetail>;
  release(question: ReleaseQuestion): Promise<ReleaseReport>;
  /** @param question if `sinceMs` is undefined, the wait begins now */
  wait(question: Omit<WaitQuestion, 'sinceMs'> & Partial<Pick<WaitQuestion, 'sinceMs'>>): Promise<WaitFacts>;
  /** History of a release, or of a host by its key, the first digits of its key, or its name. */
  history(question: HistoryAsked): Promise<HistoryPage>;
  log(question: { readonly before?: number; readonly limit: number }): Promise<LogPage>;
}

export interface HistoryAsked {
  readonly of:
    | { readonly bundle: string; readonly channel: string; readonly serial: number }
    | { readonly host: string };
  /** `next` of the previous page; undefined for the first. */
  readonly after?: string;
  readonly limit: number;
}

const maxLogEntries = 1000;

/**
 * @param fleet the name of the fleet, for the summary
 * @returns the queries. Each call reads the store and throws WritError FLEET_STORE_* where the store does not answer.
 */
export function createFleetQueries(
  db: Kysely<Tables>,
  fleet: string,
  clock: Pick<Clock, 'nowMs' | 'monotonicMs'>,
): FleetQueries {
  const views = openRepositoryViews(db);
  const { summary } = createSummaryQuery(db, { fleet, views }, clock);
  const asking = async (role: Role) => ({
    role,
    nowMs: clock.nowMs(),
    fleet: await readAccepting(db),
    views: await views.read(clock.nowMs()),
  });
  return {
    summary,
    hosts: async (question, role) => readHosts(db, question, await asking(role)),
    host: async (name, role) => readHost(db, name, await asking(role)),
    release: async (question) => readRelease(db, question, await asking('view')),
    wait: async (question) => {
      const nowMs = clock.nowMs();
      const asked = { sinceMs: nowMs, ...question };
      const read = await views.read(nowMs);
      return addSignedFacts(await readWait(db, asked, nowMs, signedSerial(read, asked)), asked, read);
    },
    history: async ({ of, ...asked }) => {
      const subject = 'host' in of ? { keyId: (await findHost(db, of.host)).key_id } : of;
      return readIntervals(db, { of: subject, ...asked });
    },
    log: (question) => readLog(db, question),
  };
}

async function readLog(
  db: Kysely<Tables>,
  { before, limit }: { readonly before?: number; readonly limit: number },
): Promise<LogPage> {
  const most = Math.min(limit, maxLogEntries);
  let query = db.selectFrom('audit').selectAll();
  if (before !== undefined) query = query.where('id', '<', before);
  const rows = await query
    .orderBy('id', 'desc')
    .limit(most + 1)
    .execute();
  const entries = rows
    .slice(0, most)
    .map(({ at_ms, ...row }) => ({ ...row, id: Number(row.id), atMs: Number(at_ms) }));
  const next = rows.length > most ? entries.at(-1)?.id : undefined;
  return { schema: 1, type: 'fleet.log', entries, ...given({ next }) };
}
