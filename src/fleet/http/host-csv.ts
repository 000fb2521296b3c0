// Hosts and histories as CSV (RFC 4180), read a page at a time while they are sent: a line for each bundle of a host, or for each
// interval. Names and labels come from hosts: invisible characters are escaped, and a cell that a spreadsheet would read as a formula
// begins with an apostrophe.
import type { HostLine, Role } from '../../core/fleet/answers.js';
import { deliveryState } from '../../core/fleet/delivery-state.js';
import type { ReleaseInterval } from '../../core/fleet/history-answers.js';
import type { HostFilter } from '../../core/fleet/host-filter.js';
import { given } from '../../core/given.js';
import { printable } from '../../core/text/printable.js';
import type { FleetQueries, HistoryAsked } from '../queries/fleet-queries.js';

const titles = [
  ...['key', 'host', 'kind', 'state', 'presence', 'health', 'version', 'root', 'last seen', 'labels'],
  ...['bundle', 'channel', 'serial', 'proven', 'offered serial', 'offered state', 'code'],
  // Spreadsheets find a column by its place: a new one is added at the end.
  ...['cloned', 'delivery state'],
];
const pageSize = 500;

/**
 * Yields the CSV of the hosts that match the filter: first the titles, then one text for each page of 500 hosts.
 * A host without bundles has one line.
 * @throws WritError FLEET_STORE_*, also after the first lines were sent
 */
export async function* hostsCsv(
  queries: Pick<FleetQueries, 'hosts'>,
  filter: HostFilter,
  role: Role,
): AsyncGenerator<string> {
  yield* csvOf(titles, async (after) => {
    const { hosts, next } = await queries.hosts({ filter, limit: pageSize, ...given({ after }) }, role);
    return { rows: hosts.flatMap(rowsOf), next };
  });
}

const historyTitles = [
  ...['key', 'host', 'bundle', 'channel', 'serial', 'manifest', 'kind', 'state', 'code', 'since', 'until'],
  'intervals',
];

/**
 * Yields the CSV of the release intervals of a host or a release: first the titles, then one text for each page.
 * @throws WritError FLEET_HOST_UNKNOWN for no such host, USAGE for several, FLEET_STORE_*, also after the first lines were sent
 */
export async function* historyCsv(
  queries: Pick<FleetQueries, 'history'>,
  of: HistoryAsked['of'],
): AsyncGenerator<string> {
  yield* csvOf(historyTitles, async (after) => {
    const { intervals, next } = await queries.history({ of, limit: pageSize, ...given({ after }) });
    return { rows: intervals.map(rowOf), next };
  });
}

function rowOf(one: ReleaseInterval): readonly string[] {
  const { key, host, bundle, channel, serial, manifest = '', kind, state = '', code = '' } = one;
  const time = (atMs: number | undefined): string => (atMs === undefined ? '' : new Date(atMs).toISOString());
  return [
    ...[key, host, bundle, channel, String(serial), manifest, kind, state, code],
    ...[time(one.sinceMs), time(one.untilMs), String(one.merged ?? 1)],
  ];
}

interface CsvPage {
  readonly rows: readonly (readonly string[])[];
  readonly next: string | undefined;
}

async function* csvOf(
  head: readonly string[],
  read: (after: string | undefined) => Promise<CsvPage>,
): AsyncGenerator<string> {
  yield lineOf(head);
  let after: string | undefined;
  do {
    const { rows, next } = await read(after);
    if (rows.length > 0) yield rows.map(lineOf).join('');
    after = next;
  } while (after !== undefined);
}

function rowsOf(host: HostLine): (readonly string[])[] {
  const labels = Object.entries(host.labels).map(([name, value]) => `${name}=${value}`);
  const seen = host.lastSeenMs === 0 ? '' : new Date(host.lastSeenMs).toISOString();
  const own = [
    ...[host.key, host.host, host.kind, host.state, host.presence, host.health, host.version],
    ...[String(host.root), seen, labels.join(' ')],
  ];
  const { presence } = host;
  const cloned = String(host.cloned);
  // Each line has every cell: RFC 4180, 2.4.
  if (host.bundles.length === 0)
    return [titles.map((title, at) => (title === 'cloned' ? cloned : (own[at] ?? '')))];
  return host.bundles.map(({ bundle, channel, active, offered }) => [
    ...[...own, bundle, channel, String(active?.serial ?? ''), active?.state ?? ''],
    ...[String(offered?.serial ?? ''), offered?.state ?? '', offered?.code ?? '', cloned],
    active === undefined ? '' : deliveryState({ state: active.state, presence, cloned: host.cloned }),
  ]);
}

function lineOf(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

/**
 * @returns the text in quotation marks, with invisible characters escaped; a formula gets an apostrophe as its first
 * character
 */
export function csvCell(text: string): string {
  const shown = printable(text);
  const safe = /^[ ]*[=+\-@|%\uff1d\uff0b\uff0d\uff20]/.test(shown) ? `'${shown}` : shown;
  return `"${safe.replaceAll('"', '""')}"`;
}
