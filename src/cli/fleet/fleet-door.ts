// Whom the fleet commands ask: a server with a token, or the store itself. Both give the same answers; neither is loaded before
// it was named. Owns the flags and which of them go together.
import { WritError } from '../../core/errors.js';
import type { CommandContext } from '../console/command.js';
import { besides, type FlagValues, optional } from '../console/flags.js';
import type { FleetDoor } from './door.js';
import { storeLocation } from './store-location.js';

export const doorFlags = {
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
  storeFile: besides(storeFileFlag(), 'url', 'store'),
};
/** @returns a new option for each command, because `besides` adds the names of the other flags to it */
export function storeFileFlag() {
  return optional(
    '--store-file <file>',
    'file with what --store would be: a password is then not in the list of processes',
  ).env('WRIT_FLEET_STORE_FILE');
}

export type DoorFlags = FlagValues<typeof doorFlags>;

/** Opens the door, asks, and closes it. */
export async function askFleet<T>(
  flags: DoorFlags,
  context: CommandContext,
  ask: (door: FleetDoor) => Promise<T>,
): Promise<T> {
  const door = await openDoor(flags, context);
  try {
    return await ask(door);
  } finally {
    await door.close();
  }
}

async function openDoor(
  { url, tokenFile, ca, ...flags }: DoorFlags,
  context: CommandContext,
): Promise<FleetDoor> {
  const store = storeLocation(flags, context.at);
  if (store !== undefined && url !== undefined)
    throw new WritError('USAGE', '--url and --store both select a server: give one of them');
  if (store !== undefined) {
    const { openStoreDoor } = await import('./store-door.js');
    return openStoreDoor(store, context);
  }
  if (url === undefined)
    throw new WritError('USAGE', 'no server is given: use --url, or --store on the machine of the server', {
      hint: 'writ fleet status --url https://fleet.example.net --token-file fleet.token',
    });
  if (tokenFile === undefined)
    throw new WritError('USAGE', '--token-file is missing', {
      hint: 'Give a file with a token for people, or name it in WRIT_FLEET_TOKEN_FILE. On the server: writ fleet token create -q --for people --role view --store S > FILE',
    });
  const { openServerDoor } = await import('./server-door.js');
  const files = { tokenFile: context.at(tokenFile), ...(ca === undefined ? {} : { caFile: context.at(ca) }) };
  return openServerDoor({ url, ...files, clock: context.clock });
}
