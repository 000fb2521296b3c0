// Hosts as CSV (RFC 4180), a line for each bundle of a host, read a page at a time while it is sent. Names and labels are the
// hosts' own: what cannot be seen is written out, and a cell that a spreadsheet would take for a formula begins with an apostrophe.
import type { HostLine, Role } from '../../core/fleet/answers.js';
import type { HostFilter } from '../../core/fleet/host-filter.js';
import { given } from '../../core/given.js';
import { printable } from '../../core/text/printable.js';
import type { FleetQueries } from '../queries/fleet-queries.js';

const titles = [
  ...['key', 'host', 'kind', 'state', 'presence', 'health', 'version', 'root', 'last seen', 'labels'],
  ...['bundle', 'channel', 'serial', 'proven', 'offered serial', 'offered state', 'code'],
];
const pageSize = 500;

export async function* hostsCsv(
  queries: Pick<FleetQueries, 'hosts'>,
  filter: HostFilter,
  role: Role,
): AsyncGenerator<string> {
  yield lineOf(titles);
  let after: string | undefined;
  do {
    const page = await queries.hosts({ filter, limit: pageSize, ...given({ after }) }, role);
    const text = page.hosts.flatMap(rowsOf).map(lineOf).join('');
    if (text !== '') yield text;
    after = page.next;
  } while (after !== undefined);
}

function rowsOf(host: HostLine): (readonly string[])[] {
  const labels = Object.entries(host.labels).map(([name, value]) => `${name}=${value}`);
  const seen = host.lastSeenMs === 0 ? '' : new Date(host.lastSeenMs).toISOString();
  const own = [
    ...[host.key, host.host, host.kind, host.state, host.presence, host.health, host.version],
    ...[String(host.root), seen, labels.join(' ')],
  ];
  // Each line has every cell: RFC 4180, 2.4.
  if (host.bundles.length === 0) return [titles.map((_, at) => own[at] ?? '')];
  return host.bundles.map(({ bundle, channel, active, offered }) => [
    ...[...own, bundle, channel, String(active?.serial ?? ''), active?.state ?? ''],
    ...[String(offered?.serial ?? ''), offered?.state ?? '', offered?.code ?? ''],
  ]);
}

function lineOf(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

export function csvCell(text: string): string {
  const shown = printable(text);
  const safe = /^[ ]*[=+\-@|%\uff1d\uff0b\uff0d\uff20]/.test(shown) ? `'${shown}` : shown;
  return `"${safe.replaceAll('"', '""')}"`;
}
