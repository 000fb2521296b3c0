// Reads the summary of a fleet. Releases and offers come from counters for every summary. Counts by state, version, root and silence
// are cached: hosts can invent versions, and all hosts may be silent. They are counted at most once a second, and take at most a
// twentieth of the time. Owns this cache; core decides the findings.
import type { ExpressionBuilder, Kysely } from 'kysely';
import type { FleetSummary, OfferGroup, RepositoryStatus, Role } from '../../core/fleet/answers.js';
import { filtersToName, summarize } from '../../core/fleet/fleet-summary.js';
import type { FleetReport } from '../../core/fleet/report.js';
import type { RepositoryView } from '../../core/fleet/signed-releases.js';
import { given } from '../../core/given.js';
import type { Clock } from '../../platform/time/clock.js';
import type { RepositoryViews } from '../repositories/repository-views.js';
import type { HostRow, Tables } from '../store/tables.js';
import type { Asking } from './host-lines.js';
import { readHostNames } from './host-names.js';
import { hasUnknownLivenessRow, isCriticalRow, isSilentRow, readAccepting } from './host-where.js';
import { type PastReports, readPastReports } from './past-reports.js';
import { countReleases } from './release-counts.js';
import { agreedRoles } from './role-rules.js';

type Db = Kysely<Tables>;
type Slow = Pick<
  FleetSummary,
  'hosts' | 'roots' | 'versions' | 'keys' | 'silence' | 'countedAtMs' | 'criticalCodes'
> & { readonly past: readonly PastReports[] };

export interface SummaryQuery {
  summary(role: Role): Promise<FleetSummary>;
}

const slowEveryMs = 1000;
const slowShare = 20;
/** Groups for which the lines of their hosts are read. */
const maxLinedGroups = 20;
const maxLinedHosts = 200;
const maxLines = 5;
const maxRows = 50;

/**
 * @returns the query of the summary. The role decides whether offers contain the output of checks; counts of hosts may
 * be some seconds old.
 */
export function createSummaryQuery(
  db: Db,
  { fleet, views: stored }: { readonly fleet: string; readonly views: RepositoryViews },
  clock: Pick<Clock, 'nowMs' | 'monotonicMs'>,
): SummaryQuery {
  const readSlowly = seldom(clock, () => countSlowly(db, clock.nowMs()));
  let filters: readonly string[] = [];
  const readNames = seldom(clock, async () => {
    const nowMs = clock.nowMs();
    return readHostNames(db, filters, { nowMs, fleet: await readAccepting(db) });
  });
  return {
    summary: async (role) => {
      const atMs = clock.nowMs();
      const views = await stored.read(atMs);
      const { past, ...slow } = await readSlowly();
      const { releases, offers, idle } = await countReleases(db, views, past);
      const lined = await withLines(db, offers, role);
      const repositories = views.length === 0 ? undefined : views.map(statusOf);
      const facts = {
        ...{ fleet, atMs, releases, offers: lined, ...given({ repositories }) },
        ...{ ...slow, ...(idle.length === 0 ? {} : { idle }) },
      };
      filters = filtersToName(facts);
      return summarize(facts, filters.length === 0 ? new Map() : await readNames());
    },
  };
}

/** @returns `read` with a cache: it runs at most once a second, and takes at most a twentieth of the time */
function seldom<T>(clock: Pick<Clock, 'monotonicMs'>, read: () => Promise<T>): () => Promise<T> {
  let last: { readonly facts: Promise<T>; untilMs: number } | undefined;
  return () => {
    const startedMs = clock.monotonicMs();
    if (last !== undefined && startedMs < last.untilMs) return last.facts;
    const begun = { facts: read(), untilMs: Number.POSITIVE_INFINITY };
    last = begun;
    const ended = (): void => {
      const endMs = clock.monotonicMs();
      begun.untilMs = endMs + Math.max(slowEveryMs, slowShare * (endMs - startedMs));
    };
    begun.facts.then(ended, () => {
      last = undefined;
    });
    return begun.facts;
  };
}

const maxChannels = 200;

function statusOf({ url, checkedAtMs, failing, roles, entries }: RepositoryView): RepositoryStatus {
  const releases = entries.slice(0, maxChannels).map(({ bundle, channel, serial, revision, seenAtMs }) => {
    return { bundle, channel, serial, revision, seenAtMs };
  });
  return { url, roles, releases, ...given({ checkedAtMs: checkedAtMs || undefined, failing }) };
}

async function countSlowly(db: Db, nowMs: number): Promise<Slow> {
  const fleet = await readAccepting(db);
  const hosts = await countHosts(db, { nowMs, fleet });
  const roots = await db
    .selectFrom('host_counters')
    .select(['root_version', 'root_digest'])
    .select((of) => of.fn.sum<number>('count').as('hosts'))
    .where('state', '=', 'accepted')
    .where('root_version', '>', 0)
    .groupBy(['root_version', 'root_digest'])
    .having((of) => of.fn.sum<number>('count'), '>', 0)
    .orderBy('root_version', 'desc')
    .limit(maxRows)
    .execute();
  const versions = await db
    .selectFrom('host_counters')
    .select('version')
    .select((of) => of.fn.sum<number>('count').as('hosts'))
    .where('state', '=', 'accepted')
    .where('version', '!=', '')
    .groupBy('version')
    .having((of) => of.fn.sum<number>('count'), '>', 0)
    .orderBy('hosts', 'desc')
    .limit(maxRows)
    .execute();
  return {
    countedAtMs: nowMs,
    hosts,
    silence: silenceOf(hosts),
    roots: roots.map((one) => ({
      version: Number(one.root_version),
      digest: one.root_digest,
      hosts: Number(one.hosts),
    })),
    versions: versions.map((one) => ({ version: one.version, hosts: Number(one.hosts) })),
    keys: await keysOf(db),
    past: await readPastReports(db, { nowMs, fleet }),
    ...(await criticalCodesOf(db, hosts.critical, { nowMs, fleet })),
  };
}

async function countHosts(db: Db, at: Omit<Asking, 'role' | 'views'>) {
  const rows = await db
    .selectFrom('host_counters')
    .select(['state', 'agent', 'cloned', 'blocked'])
    .select((of) => of.fn.sum<number>('count').as('hosts'))
    .groupBy(['state', 'agent', 'cloned', 'blocked'])
    .execute();
  const count = (fits: (row: (typeof rows)[number]) => boolean): number =>
    rows.filter(fits).reduce((sum, row) => sum + Number(row.hosts), 0);
  return {
    accepted: count(({ state }) => state === 'accepted'),
    waiting: count(({ state }) => state === 'waiting'),
    stopped: count(({ state, agent }) => state === 'accepted' && agent === 'stop'),
    blocked: count(({ state, blocked }) => state === 'accepted' && Number(blocked) === 1),
    critical: await countRows(db, 'writ', (eb) => isCriticalRow(eb, at)),
    silent: await countRows(db, 'writ', (eb) => isSilentRow(eb, at)),
    unjudged: await countRows(db, 'writ', (eb) => hasUnknownLivenessRow(eb, at)),
    cloned: count(({ cloned }) => Number(cloned) === 1),
    // Every OPA has the agent state `run`, because it does not announce its end.
    opa: await countRows(db, 'opa', (eb) => eb.and({ state: 'accepted', agent: 'run' })),
  };
}

async function countRows(
  db: Db,
  kind: HostRow['kind'],
  fits: (eb: ExpressionBuilder<Tables, 'hosts'>) => ReturnType<typeof isSilentRow>,
): Promise<number> {
  const { hosts } = await db
    .selectFrom('hosts')
    .select((of) => of.fn.countAll<number>().as('hosts'))
    .where('kind', '=', kind)
    .where(fits)
    .executeTakeFirstOrThrow();
  return Number(hosts);
}

const maxCriticalReports = 20;

/** @returns the most frequent first findings of critical hosts. Hosts sort findings, the worst first. */
async function criticalCodesOf(
  db: Db,
  critical: number,
  at: Omit<Asking, 'role' | 'views'>,
): Promise<Pick<Slow, 'criticalCodes'>> {
  if (critical === 0) return {};
  const rows = await db
    .selectFrom('hosts')
    .select('report')
    .where((eb) => isCriticalRow(eb, at))
    .limit(maxCriticalReports)
    .execute();
  const counts = new Map<string, number>();
  for (const { report } of rows) {
    const { findings = [] } = report === '' ? {} : (JSON.parse(report) as Partial<FleetReport>);
    const [code] = findings;
    if (code !== undefined) counts.set(code, (counts.get(code) ?? 0) + 1);
  }
  const codes = [...counts].toSorted(([, a], [, b]) => b - a).map(([code]) => code);
  return codes.length === 0 ? {} : { criticalCodes: codes.slice(0, 3) };
}

/** Decides for the fleet by the majority, so that a host with a long interval does not decide it. */
function silenceOf({ accepted, stopped, unjudged }: Slow['hosts']): Slow['silence'] {
  return 2 * unjudged > accepted - stopped ? 'too-early' : 'judged';
}

/** Roles from the hosts with the newest reports, merged: one host with old metadata or a false report must not decide. */
async function keysOf(db: Db): Promise<Slow['keys']> {
  const rows = await db
    .selectFrom('hosts')
    .select('report')
    .where('state', '=', 'accepted')
    .where('agent', '=', 'run')
    .where('kind', '=', 'writ')
    .orderBy('last_seen_ms', 'desc')
    .limit(20)
    .execute();
  const reported = rows.map(({ report }) => {
    const { trust = [] } = report === '' ? {} : (JSON.parse(report) as Partial<FleetReport>);
    return trust;
  });
  return agreedRoles(reported).slice(0, maxRows);
}

/** Adds to the largest groups the first lines that their hosts reported, and the time of the first report. */
async function withLines(db: Db, offers: readonly OfferGroup[], role: Role): Promise<OfferGroup[]> {
  const largest = new Set(offers.toSorted((a, b) => b.hosts - a.hosts).slice(0, maxLinedGroups));
  return Promise.all(
    offers.map(async (one) => (largest.has(one) ? { ...one, ...(await linesOf(db, one, role)) } : one)),
  );
}

async function linesOf(db: Db, { bundle, channel, serial, state, code }: OfferGroup, role: Role) {
  const rows = await db
    .selectFrom('host_bundles')
    .select(['offered_at_ms', 'offered_line'])
    .where('offered_state', '=', state)
    .where('offered_code', '=', code)
    .where('bundle', '=', bundle)
    .where('channel', '=', channel)
    .where('offered_serial', '=', serial)
    // The condition of the partial index of offers.
    .where((eb) => eb('offered_serial', '>', eb.lit(0)))
    .orderBy('offered_at_ms')
    .limit(maxLinedHosts)
    .execute();
  const firstAtMs = rows.length === 0 ? undefined : Math.min(...rows.map((row) => Number(row.offered_at_ms)));
  const counts = new Map<string, number>();
  for (const { offered_line: line } of rows) if (line !== '') counts.set(line, (counts.get(line) ?? 0) + 1);
  const lines = [...counts].toSorted(([, a], [, b]) => b - a).map(([line]) => line);
  const shown = role === 'view' || lines.length === 0 ? undefined : lines.slice(0, maxLines);
  return given({ firstAtMs, lines: shown });
}
