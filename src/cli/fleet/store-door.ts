// Asks the store itself, with all rights: whoever can open it has them. Works beside a running server, which is how the first
// token comes to be.
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
import type { FleetDoor } from './door.js';

export async function openStoreDoor(location: string, context: CommandContext): Promise<FleetDoor> {
  const { clock, command } = context;
  const isUrl = isDatabaseUrl(location);
  const place = isUrl ? location : context.at(location);
  // A mistyped name would be an empty fleet, of which all is well; a token may come before the server.
  if (!isUrl && command !== 'fleet token' && !existsSync(place))
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
    history: (question) => queries.history(question),
    wait: (question) => queries.wait(question),
    log: (question) => queries.log(question),
    tokens: async () => (await listTokens(db)).map((one) => shownToken(one, clock.nowMs())),
    createToken: (wanted) => createToken(db, wanted, change()),
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
