// Opens the client of the fleet commands: a server with a token, or the store itself. Both return the same answers, and each module is
// loaded at its first use. Owns the flags and which of them exclude each other.
import { WritError } from '../../core/errors.js';
import type { CommandContext } from '../console/command.js';
import { besides, type FlagValues, optional } from '../console/flags.js';
import type { FleetClient } from './fleet-client.js';
import { readStoreLocation } from './store-location.js';

export const fleetClientFlags = {
  url: besides(
    optional('--url <url>', 'address of the fleet server').env('WRIT_FLEET_URL'),
    'store',
    'storeFile',
  ),
  tokenFile: optional('--token-file <file>', 'file with a token for people').env('WRIT_FLEET_TOKEN_FILE'),
  ca: optional('--ca <file>', "authorities to trust for --url instead of the system's, PEM").env(
    'WRIT_FLEET_CA',
  ),
  store: besides(
    optional(
      '--store <store>',
      "the server's own store, on its machine: a directory or a postgres:// URL",
    ).env('WRIT_FLEET_STORE'),
    'url',
    'storeFile',
  ),
  storeFile: besides(createStoreFileFlag(), 'url', 'store'),
};
/** @returns a new option for each command, because `besides` adds the names of the excluded flags to it */
export function createStoreFileFlag() {
  return optional(
    '--store-file <file>',
    'file with what --store would be: a password is then not in the list of processes',
  ).env('WRIT_FLEET_STORE_FILE');
}

export interface FleetClientFlags extends FlagValues<typeof fleetClientFlags> {
  /** Makes a store that is missing: the first token may be created before the server starts. */
  readonly createsStore?: boolean;
}

/**
 * Opens a client, runs an action with it, and closes it.
 *
 * @throws WritError USAGE for flags that are missing or exclude each other; otherwise the error of the client
 */
export async function withFleetClient<T>(
  flags: FleetClientFlags,
  context: CommandContext,
  act: (client: FleetClient) => Promise<T>,
): Promise<T> {
  const client = await openFleetClient(flags, context);
  try {
    return await act(client);
  } finally {
    await client.close();
  }
}

async function openFleetClient(
  { url, tokenFile, ca, createsStore = false, ...flags }: FleetClientFlags,
  context: CommandContext,
): Promise<FleetClient> {
  const store = readStoreLocation(flags, context.at);
  if (store !== undefined && url !== undefined)
    throw new WritError('USAGE', '--url and --store both select a server: give one of them');
  if (store !== undefined) {
    const { openLocalFleetClient } = await import('./local-fleet-client.js');
    return openLocalFleetClient(store, { createsStore }, context);
  }
  if (url === undefined)
    throw new WritError('USAGE', 'no server is given: use --url, or --store on the machine of the server', {
      hint: 'writ fleet status --url https://fleet.example.net --token-file fleet.token',
    });
  if (tokenFile === undefined)
    throw new WritError('USAGE', '--token-file is missing', {
      hint: 'Give a file with a token for people, or name it in WRIT_FLEET_TOKEN_FILE. On the server: writ fleet token create -q --for people --role view --store S > FILE',
    });
  const { openHttpFleetClient } = await import('./http-fleet-client.js');
  const files = { tokenFile: context.at(tokenFile), ...(ca === undefined ? {} : { caFile: context.at(ca) }) };
  return openHttpFleetClient({ url, ...files, clock: context.clock });
}
