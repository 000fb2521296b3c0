// Runs the queries of commands on the store itself, with all rights, because a user who can open the store has them. Works beside a
// running server: the first token is created in this way.
import { existsSync } from 'node:fs';
import { WritError } from '../../core/errors.js';
import { parseHostFilter } from '../../core/fleet/host-filter.js';
import { given } from '../../core/given.js';
import { approveHost, retireHost, retireHostsOf } from '../../fleet/hosts/change-host.js';
import { createFleetQueries } from '../../fleet/queries/fleet-queries.js';
import { findHost } from '../../fleet/queries/host-pages.js';
import { isDatabaseUrl, openFleetStore } from '../../fleet/store/open-store.js';
import { shownToken } from '../../fleet/tokens/shown-token.js';
import { createToken, listTokens, revokeToken } from '../../fleet/tokens/tokens.js';
import { silentLog } from '../../platform/telemetry/silent-log.js';
import type { CommandContext } from '../console/command.js';
import type { FleetClient } from './fleet-client.js';

/**
 * @param location a directory or a postgres:// URL
 * With `createsStore`, a missing directory becomes a new store.
 * @returns the client of the open store; the caller closes it
 * @throws WritError FLEET_STORE_LOCATION for a directory that does not exist, and as openFleetStore
 */
export async function openLocalFleetClient(
  location: string,
  { createsStore }: { readonly createsStore: boolean },
  context: CommandContext,
): Promise<FleetClient> {
  const { clock } = context;
  const isUrl = isDatabaseUrl(location);
  const place = isUrl ? location : context.at(location);
  // A mistyped path would open an empty fleet without findings and tokens.
  if (!isUrl && !createsStore && !existsSync(place))
    throw new WritError('FLEET_STORE_LOCATION', `there is no store at ${location}`);
  const store = await openFleetStore(place, { clock, log: silentLog() });
  const { db } = store;
  const queries = createFleetQueries(db, store.fleetId, clock);
  const change = () => ({ who: 'store', nowMs: clock.nowMs() });
  return {
    summary: () => queries.summary('operate'),
    hosts: ({ where, after, limit }) =>
      queries.hosts({ filter: parseHostFilter(where), limit, ...given({ after }) }, 'operate'),
    host: (name) => queries.host(name, 'operate'),
    history: (query) => queries.history(query),
    wait: (query) => queries.wait(query),
    log: (query) => queries.log(query),
    tokens: async () => (await listTokens(db)).map((one) => shownToken(one, clock.nowMs())),
    createToken: (token) => createToken(db, token, change()),
    revokeToken: (id) => revokeToken(db, id, change()),
    retireHostsOf: (tokenId, afterKey) => retireHostsOf(db, tokenId, { ...change(), afterKey }),
    changeHost: async (name, verb) => {
      const { key_id: key, host } = await findHost(db, name);
      await (verb === 'approve' ? approveHost : retireHost)(db, key, change());
      return { key, host };
    },
    close: () => store.close(),
  };
}
