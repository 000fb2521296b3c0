// Reads hosts by name, in pages that begin after a key, so that a later page costs no more than the first. Also reads one host with
// all details. Owns cursors and bounds.
import type { Kysely, Selectable } from 'kysely';
import { WritError } from '../../core/errors.js';
import type { HostDetail, HostsPage, OpaBundle, Role } from '../../core/fleet/answers.js';
import type { HostFilter } from '../../core/fleet/host-filter.js';
import { isHostKey, mayBeginHostKey } from '../../core/fleet/host-names.js';
import type { FleetReport, OutcomeReport } from '../../core/fleet/report.js';
import { plainPattern } from '../../core/fleet/report-schema.js';
import { given } from '../../core/given.js';
import { readIntervals } from '../intervals/interval-query.js';
import type { Tables } from '../store/tables.js';
import { type Asking, lineColumns, readLines } from './host-lines.js';
import { matching } from './host-where.js';
import { releasesWithStanding } from './standing-query.js';

export const maxHostsPerPage = 1000;

export interface HostsQuestion {
  readonly filter: HostFilter;
  /** `next` of the previous page; undefined for the first. */
  readonly after?: string;
  readonly limit: number;
}

/**
 * @returns one page of the hosts that match the filter, by name and key id. `next` is the cursor of the next page;
 * undefined on the last.
 * @throws WritError USAGE for an invalid cursor, FLEET_STORE_*
 */
export async function readHosts(
  db: Kysely<Tables>,
  question: HostsQuestion,
  asking: Asking,
): Promise<HostsPage> {
  const limit = Math.min(question.limit, maxHostsPerPage);
  const releases = await releasesWithStanding(db, asking.views, question.filter.bundle);
  let query = db
    .selectFrom('hosts')
    .select(lineColumns)
    .where((eb) => matching(eb, question.filter, asking, releases));
  if (question.after !== undefined) {
    const [host, key] = cursorOf(question.after);
    query = query.where((eb) =>
      eb.or([eb('host', '>', host), eb.and([eb('host', '=', host), eb('key_id', '>', key)])]),
    );
  }
  const rows = await query
    .orderBy('host')
    .orderBy('key_id')
    .limit(limit + 1)
    .execute();
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next = rows.length > limit && last !== undefined ? cursorText(last.host, last.key_id) : undefined;
  const hosts = await readLines(db, shown, asking);
  return { schema: 1, type: 'fleet.hosts', hosts, ...given({ next }) };
}

function cursorText(host: string, key: string): string {
  return Buffer.from(JSON.stringify([host, key])).toString('base64url');
}

function cursorOf(text: string): readonly [host: string, key: string] {
  try {
    const cursor: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    const [host, key] = Array.isArray(cursor) ? (cursor as unknown[]) : [];
    if (isPlain(host) && isPlain(key)) return [host, key];
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new WritError('USAGE', 'this is not a position in a list of hosts', {
    hint: 'Use `next` of the previous page.',
  });
}

/** Excludes NUL, which PostgreSQL rejects in a text. */
function isPlain(text: unknown): text is string {
  return typeof text === 'string' && new RegExp(plainPattern, 'u').test(text);
}

const maxOutcomes = 100;
const maxIntervals = 100;
const maxNamesakes = 20;

/**
 * @param name a key, the first 8 or more digits of a key, or a name that only one host has
 * @returns the host with its newest 100 outcomes, and the keys of at most 20 other hosts of its name
 * @throws WritError FLEET_HOST_UNKNOWN for no match, USAGE for several
 */
export async function readHost(db: Kysely<Tables>, name: string, asking: Asking): Promise<HostDetail> {
  const row = await findHost(db, name);
  const [line] = await readLines(db, [row], asking);
  if (line === undefined) throw unknownHost(name);
  const outcomes = await db
    .selectFrom('outcomes')
    .select(['n', 'at_ms', 'trigger', 'outcome', 'code', 'bundles'])
    .where('key_id', '=', row.key_id)
    .orderBy('n', 'desc')
    .limit(maxOutcomes)
    .execute();
  const namesakes = await db
    .selectFrom('hosts')
    .select('key_id')
    .where('host', '=', row.host)
    .where('key_id', '!=', row.key_id)
    .where('state', '!=', 'retired')
    .orderBy('key_id')
    .limit(maxNamesakes)
    .execute();
  return {
    schema: 1,
    type: 'fleet.host',
    ...line,
    enrolledAtMs: Number(row.enrolled_at_ms),
    everyMs: Number(row.every_ms),
    ...(row.kind === 'opa'
      ? { opaBundles: opaBundlesFor(row.report, asking.role) }
      : given({ report: reportFor(row.report, asking.role) })),
    outcomes: outcomes.map(({ n, at_ms, trigger, outcome, code, bundles }) => {
      const about = JSON.parse(bundles) as OutcomeReport['bundles'];
      const known = code === '' ? undefined : code;
      return {
        n: Number(n),
        atMs: Number(at_ms),
        trigger,
        outcome,
        ...given({ code: known }),
        bundles: about,
      };
    }),
    intervals: (await readIntervals(db, { of: { keyId: row.key_id }, limit: maxIntervals })).intervals,
    namesakes: namesakes.map(({ key_id }) => key_id),
  };
}

/**
 * Finds a host by its key, the first digits of its key, or its name. A whole key is matched with keys alone: otherwise a host with
 * this text as its name would make the host of that key unreachable for queries and for retirement. Refuses a text that is the
 * beginning of one key and the name of another host, and lists the whole keys.
 * @throws WritError FLEET_HOST_UNKNOWN for no match, USAGE for several
 */
export async function findHost(db: Kysely<Tables>, name: string) {
  const rows = db.selectFrom('hosts').selectAll().orderBy('key_id').limit(maxNamesakes);
  if (isHostKey(name)) return only(name, await rows.where('key_id', '=', name).execute());
  const named = await rows
    .where('host', '=', name)
    .where('state', '!=', 'retired')
    .where('kind', '=', 'writ')
    .execute();
  // The text has hex digits only, so it has no wildcard of LIKE.
  const begun = mayBeginHostKey(name) ? await rows.where('key_id', 'like', `${name}%`).execute() : [];
  const others = begun.filter((one) => !named.some(({ key_id }) => key_id === one.key_id));
  return only(name, [...named, ...others]);
}

type FoundHost = Selectable<Tables['hosts']>;

function only(name: string, found: readonly FoundHost[]): FoundHost {
  const [row, other] = found;
  if (row === undefined) throw unknownHost(name);
  if (other === undefined) return row;
  const keys = found.map(({ key_id, state }) => `${key_id} (${state})`);
  throw new WritError('USAGE', `several hosts are called ${JSON.stringify(name)}`, {
    hint: `Give the key of one of them: ${keys.join(', ')}.`,
  });
}

function unknownHost(name: string): WritError {
  return new WritError('FLEET_HOST_UNKNOWN', `no host is called ${JSON.stringify(name.slice(0, 255))}`);
}

function opaBundlesFor(text: string, role: Role): readonly OpaBundle[] {
  const { opa } = JSON.parse(text) as { readonly opa: readonly OpaBundle[] };
  // 0.1.0 stored an empty text if OPA sent none.
  return opa.map(({ name, revision, code, message }) => ({
    name,
    ...given({
      revision: revision || undefined,
      code: code || undefined,
      message: role === 'view' ? undefined : message,
    }),
  }));
}

function reportFor(text: string, role: Role): FleetReport | undefined {
  if (text === '') return undefined;
  const report = JSON.parse(text) as FleetReport;
  if (role !== 'view') return report;
  const bundles = report.bundles.map(({ offered, ...bundle }) => {
    if (offered === undefined) return bundle;
    const { line: _line, output: _output, ...codes } = offered;
    return { ...bundle, offered: codes };
  });
  return { ...report, bundles };
}
