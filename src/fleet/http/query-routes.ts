// Routes for the role `view` and above: answers of the queries, pages of hosts, CSV, and the stream of the summary. Reads only.
import { Readable } from 'node:stream';
import { parseHostFilter } from '../../core/fleet/host-filter.js';
import { given } from '../../core/given.js';
import type { FleetQueries, HistoryAsked } from '../queries/fleet-queries.js';
import type { RefreshTrigger } from '../repositories/refresh-trigger.js';
import { historyCsv, hostsCsv } from './host-csv.js';
import {
  type JsonSchema,
  nameSchema,
  numberSchema,
  object,
  type Route,
  serialSchema,
  textSchema,
} from './routes.js';
import type { SummaryEvents } from './summary-events.js';

interface HostsAsked {
  readonly where?: string;
  readonly after?: string;
  readonly limit?: number;
}

interface WaitAsked {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly since?: number;
  readonly exceptSilentMs?: number;
}

const hostsQuery = { where: textSchema(2000), after: textSchema(1000), limit: numberSchema(1, 1000) };
const release = { bundle: nameSchema, channel: nameSchema, serial: serialSchema };
const timeSchema = numberSchema(0, Number.MAX_SAFE_INTEGER);

/**
 * Creates the routes that answer queries about hosts and releases. Registers nothing, and throws nothing.
 * @param refreshTrigger requested for each query of a wait, so that the repositories are read again soon
 * @returns GET routes below /v1: summary, its events, hosts (JSON, CSV and one host), a release, wait, log, and the history of
 *   a release or host (JSON and CSV). The order has no meaning
 */
export function queryRoutes(
  queries: FleetQueries,
  events: SummaryEvents,
  refreshTrigger: Pick<RefreshTrigger, 'request'>,
): readonly Route[] {
  return [
    ...summaryRoutes(queries, events),
    ...hostsRoutes(queries),
    ...releaseRoutes(queries, refreshTrigger),
    ...historyRoutes(queries),
  ];
}

interface HistoryParts {
  readonly url: string;
  readonly what: string;
  readonly params: JsonSchema;
  readonly ofAsked: (params: unknown) => HistoryAsked['of'];
}

const histories: readonly HistoryParts[] = [
  {
    url: '/v1/releases/:bundle/:channel/:serial/history',
    what: 'Which hosts ran or refused a release, from when to when',
    params: object(release, ['bundle', 'channel', 'serial']),
    ofAsked: (params) => params as HistoryAsked['of'],
  },
  {
    url: '/v1/hosts/:key/history',
    what: 'What a host ran and refused, from when to when',
    params: object({ key: textSchema(300) }, ['key']),
    ofAsked: (params) => ({ host: (params as { readonly key: string }).key }),
  },
];

function historyRoutes(queries: FleetQueries): Route[] {
  return histories.flatMap(({ url, what, params, ofAsked }): Route[] => [
    {
      method: 'GET',
      url,
      summary: `${what}, the newest first, in pages`,
      access: 'view',
      params,
      querystring: object({ after: textSchema(2000), limit: numberSchema(1, 1000) }),
      type: 'fleet.history',
      handle: ({ request }) => {
        const { after, limit = 100 } = request.query as Pick<HostsAsked, 'after' | 'limit'>;
        return queries.history({ of: ofAsked(request.params), limit, ...given({ after }) });
      },
    },
    {
      method: 'GET',
      url: `${url}.csv`,
      summary: `${what}, all of it`,
      access: 'view',
      params,
      handle: ({ request, reply }) => {
        void reply.header('content-disposition', 'attachment; filename="history.csv"');
        const lines = historyCsv(queries, ofAsked(request.params));
        return reply.type('text/csv; charset=utf-8').send(Readable.from(lines));
      },
    },
  ]);
}

function summaryRoutes(queries: FleetQueries, events: SummaryEvents): Route[] {
  return [
    {
      method: 'GET',
      url: '/v1/summary',
      summary: 'One sentence about the fleet, with its releases, refusals, silence, roots and keys',
      access: 'view',
      type: 'fleet.summary',
      handle: ({ caller }) => queries.summary(caller.role),
    },
    {
      method: 'GET',
      url: '/v1/events',
      summary: 'The summary each time it changed, at most once a second, as server-sent events',
      access: 'view',
      handle: ({ request, reply, caller, again }) =>
        request.method === 'HEAD'
          ? reply.type('text/event-stream; charset=utf-8').send()
          : events.follow(reply, {
              ...{ role: caller.role, who: caller.who, again },
              ...given({ address: caller.by === 'proxy' ? undefined : request.ip }),
            }),
    },
  ];
}

function hostsRoutes(queries: FleetQueries): Route[] {
  return [
    {
      method: 'GET',
      url: '/v1/hosts',
      summary: 'Hosts by name, in pages',
      access: 'view',
      querystring: object(hostsQuery),
      type: 'fleet.hosts',
      handle: ({ request, caller }) => {
        const { where = '', after, limit = 100 } = request.query as HostsAsked;
        return queries.hosts({ filter: parseHostFilter(where), limit, ...given({ after }) }, caller.role);
      },
    },
    {
      method: 'GET',
      url: '/v1/hosts.csv',
      summary: 'All hosts of a filter, a line for each of their bundles',
      access: 'view',
      querystring: object({ where: hostsQuery.where }),
      handle: ({ request, reply, caller }) => {
        const filter = parseHostFilter((request.query as HostsAsked).where ?? '');
        void reply.header('content-disposition', 'attachment; filename="hosts.csv"');
        return reply
          .type('text/csv; charset=utf-8')
          .send(Readable.from(hostsCsv(queries, filter, caller.role)));
      },
    },
    {
      method: 'GET',
      url: '/v1/hosts/:key',
      summary: 'One host, by its key, the first digits of it, or a name that only one has',
      access: 'view',
      params: object({ key: textSchema(300) }, ['key']),
      type: 'fleet.host',
      handle: ({ request, caller }) => queries.host((request.params as { key: string }).key, caller.role),
    },
  ];
}

function releaseRoutes(queries: FleetQueries, refreshTrigger: Pick<RefreshTrigger, 'request'>): Route[] {
  return [
    {
      method: 'GET',
      url: '/v1/releases/:bundle/:channel/:serial',
      summary:
        'Hosts that run a release and since when, hosts that do not, its signed entry, and the difference to `against`',
      access: 'view',
      params: object(release, ['bundle', 'channel', 'serial']),
      querystring: object({ against: serialSchema }),
      type: 'fleet.release',
      handle: ({ request }) =>
        queries.release({ ...(request.params as WaitAsked), ...(request.query as { against?: number }) }),
    },
    {
      method: 'GET',
      url: '/v1/wait',
      summary: 'The counts that decide a wait for a release; `since` is `atMs` of the first answer',
      access: 'view',
      querystring: object({ ...release, since: timeSchema, exceptSilentMs: timeSchema }, [
        'bundle',
        'channel',
        'serial',
      ]),
      type: 'fleet.wait',
      handle: ({ request }) => {
        // So that a command that waits learns of a withdrawal at once, not half a minute later.
        refreshTrigger.request();
        const { bundle, channel, serial, since: sinceMs, exceptSilentMs } = request.query as WaitAsked;
        return queries.wait({ bundle, channel, serial, ...given({ sinceMs, exceptSilentMs }) });
      },
    },
    {
      method: 'GET',
      url: '/v1/log',
      summary: 'Who changed what, newest first',
      access: 'view',
      querystring: object({ before: timeSchema, limit: numberSchema(1, 1000) }),
      type: 'fleet.log',
      handle: ({ request }) => {
        const { before, limit = 100 } = request.query as { before?: number; limit?: number };
        return queries.log({ limit, ...given({ before }) });
      },
    },
  ];
}
