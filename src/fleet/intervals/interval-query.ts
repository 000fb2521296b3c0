// Reads the history of a release or a host in pages, the newest interval first. Owns cursors and bounds.
import type { ExpressionBuilder, Kysely } from 'kysely';
import { WritError } from '../../core/errors.js';
import type { HistoryPage, PastHosts, ReleaseInterval } from '../../core/fleet/history-answers.js';
import { plainPattern } from '../../core/fleet/report-schema.js';
import { given } from '../../core/given.js';
import type { IntervalRow, Tables } from '../store/tables.js';
import { intervalKey } from './interval-rules.js';

export type HistorySubject =
  | { readonly bundle: string; readonly channel: string; readonly serial: number }
  /** Of a host, by its whole key. */
  | { readonly keyId: string };

export interface HistoryQuestion {
  readonly of: HistorySubject;
  /** `next` of the previous page; undefined for the first. */
  readonly after?: string;
  readonly limit: number;
}

export const maxIntervalsPerPage = 1000;
/** Bounds the codes of refusals in an answer. */
const maxCodes = 20;

/** Sort columns after the descending time. Together they are the key of a row, so that every position is unique. */
const inOrder = intervalKey.filter((column) => column !== 'since_ms');

/**
 * Reads one page of the history of a release or a host. Writes nothing.
 * @returns at most `limit` release intervals (never more than 1000), the newest first; an unknown release or host has none.
 *   `next` is the cursor of the following page; undefined on the last page
 * @throws WritError USAGE if `after` is not a cursor of an earlier page; FLEET_STORE_* if the store fails
 */
export async function readIntervals(
  db: Kysely<Tables>,
  { of, after, limit: asked }: HistoryQuestion,
): Promise<HistoryPage> {
  const limit = Math.min(asked, maxIntervalsPerPage);
  let query = db
    .selectFrom('intervals')
    .leftJoin('hosts', 'hosts.key_id', 'intervals.key_id')
    .selectAll('intervals')
    .select('hosts.host')
    .where((eb) => eb.and(conditionsOf(of)));
  if (after !== undefined) {
    const place = placeOf(after);
    query = query.where((eb) => isBehind(eb as unknown as Builder, place));
  }
  query = query.orderBy('intervals.since_ms', 'desc');
  for (const column of inOrder) query = query.orderBy(`intervals.${column}`);
  const rows = await query.limit(limit + 1).execute();
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next = rows.length > limit && last !== undefined ? cursorText(last) : undefined;
  return { schema: 1, type: 'fleet.history', intervals: shown.map(intervalOf), ...given({ next }) };
}

/** @returns how many hosts ran, confirmed and refused a release in the retained history */
export async function countPastHosts(
  db: Kysely<Tables>,
  release: { readonly bundle: string; readonly channel: string; readonly serial: number },
): Promise<PastHosts> {
  const rows = await db
    .selectFrom('intervals')
    .select(['kind', 'state', 'code'])
    .select((eb) => eb.fn.count<number>('key_id').distinct().as('hosts'))
    .where((eb) => eb.and(conditionsOf(release)))
    .groupBy(['kind', 'state', 'code'])
    .execute();
  const { ran } = await db
    .selectFrom('intervals')
    .select((eb) => eb.fn.count<number>('key_id').distinct().as('ran'))
    .where((eb) => eb.and({ ...conditionsOf(release), 'intervals.kind': 'active' }))
    .executeTakeFirstOrThrow();
  const confirmed = rows.find(({ state }) => state === 'confirmed')?.hosts ?? 0;
  const refusals = rows
    .filter(({ kind }) => kind === 'refused')
    .map(({ state, code, hosts }) => ({ state, code, hosts: Number(hosts) }))
    .sort((a, b) => b.hosts - a.hosts)
    .slice(0, maxCodes);
  return { ran: Number(ran), confirmed: Number(confirmed), refusals };
}

function conditionsOf(of: HistorySubject): Record<string, string | number> {
  if ('keyId' in of) return { 'intervals.key_id': of.keyId };
  const { bundle, channel, serial } = of;
  return { 'intervals.bundle': bundle, 'intervals.channel': channel, 'intervals.serial': serial };
}

type Place = readonly [sinceMs: number, ...rest: readonly (string | number)[]];
type Builder = ExpressionBuilder<Record<string, Record<string, string | number>>, string>;

/** Matches rows after a position: earlier ones, or those of the same time that follow in the other columns. */
function isBehind(eb: Builder, [sinceMs, ...rest]: Place) {
  const columns = inOrder.map((column) => `intervals.${column}`);
  const later = columns.map((column, at) =>
    eb.and([
      ...columns.slice(0, at).map((before, index) => eb(before, '=', rest[index] ?? '')),
      eb(column, '>', rest[at] ?? ''),
    ]),
  );
  const time = 'intervals.since_ms';
  return eb.or([eb(time, '<', sinceMs), eb.and([eb(time, '=', sinceMs), eb.or(later)])]);
}

function cursorText(row: IntervalRow): string {
  const place = [row.since_ms, ...inOrder.map((column) => row[column])];
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

function placeOf(text: string): Place {
  try {
    const place: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    if (isPlace(place)) return place;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new WritError('USAGE', 'this is not a position in a history', {
    hint: 'Use `next` of the previous page.',
  });
}

/** Checks a cursor, because PostgreSQL rejects NUL in a text and compares no text with a number. */
function isPlace(place: unknown): place is Place {
  if (!Array.isArray(place) || place.length !== intervalKey.length) return false;
  const [sinceMs, ...rest] = place as unknown[];
  const isText = (value: unknown): boolean =>
    typeof value === 'string' && new RegExp(plainPattern, 'u').test(value);
  return (
    Number.isSafeInteger(sinceMs) &&
    rest.every((value, at) => (inOrder[at] === 'serial' ? Number.isSafeInteger(value) : isText(value)))
  );
}

function intervalOf(row: IntervalRow & { readonly host: string | null }): ReleaseInterval {
  const { key_id: key, host, bundle, channel, serial, kind, since_ms: sinceMs } = row;
  const orNothing = (text: string): string | undefined => (text === '' ? undefined : text);
  return {
    ...{ key, host: host ?? '', bundle, channel, serial, kind, sinceMs },
    ...given({
      manifest: orNothing(row.manifest),
      state: orNothing(row.state),
      code: orNothing(row.code),
      untilMs: row.until_ms === 0 ? undefined : row.until_ms,
      merged: row.merged === 1 ? undefined : row.merged,
    }),
  };
}
