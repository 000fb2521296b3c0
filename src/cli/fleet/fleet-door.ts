// Whom the fleet commands ask: a server with a token, or the store itself. Both give the same answers; neither is loaded before
// it was named. Owns the flags and which of them go together.
import { WritError } from '../../core/errors.js';
import type {
  FleetSummary,
  HostDetail,
  HostsPage,
  LogPage,
  Role,
  TokenLine,
  WaitFacts,
} from '../../core/fleet/answers.js';
import type { CommandContext } from '../console/command.js';
import { type FlagValues, optional } from '../console/flags.js';

export interface WantedToken {
  readonly kind: TokenLine['kind'];
  readonly role?: Role;
  readonly note?: string;
  readonly uses?: number;
  readonly lifetimeMs?: number;
  readonly hosts?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface WaitAsked {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly sinceMs?: number;
  readonly exceptSilentMs?: number;
}

/** Each throws what the one who was asked says. */
export interface FleetDoor {
  summary(): Promise<FleetSummary>;
  hosts(question: {
    readonly where: string;
    readonly after?: string;
    readonly limit: number;
  }): Promise<HostsPage>;
  host(name: string): Promise<HostDetail>;
  wait(question: WaitAsked): Promise<WaitFacts>;
  log(question: { readonly before?: number; readonly limit: number }): Promise<LogPage>;
  tokens(): Promise<readonly TokenLine[]>;
  createToken(wanted: WantedToken): Promise<{ readonly id: string; readonly token: string }>;
  revokeToken(id: string): Promise<void>;
  changeHost(
    name: string,
    verb: 'approve' | 'retire',
  ): Promise<{ readonly key: string; readonly host: string }>;
  close(): Promise<void>;
}

export const doorFlags = {
  url: optional('--url <url>', 'address of the fleet server').env('WRIT_FLEET_URL'),
  tokenFile: optional('--token-file <file>', 'file with a token for people').env('WRIT_FLEET_TOKEN_FILE'),
  store: optional(
    '--store <store>',
    "the server's own store, on its machine: a directory or a postgres:// URL",
  ).env('WRIT_FLEET_STORE'),
};
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

async function openDoor({ url, tokenFile, store }: DoorFlags, context: CommandContext): Promise<FleetDoor> {
  if (store !== undefined && url !== undefined)
    throw new WritError('USAGE', '--url and --store both say whom to ask: only one can be asked');
  if (store !== undefined) {
    const { openStoreDoor } = await import('./store-door.js');
    return openStoreDoor(store, context);
  }
  if (url === undefined)
    throw new WritError('USAGE', 'whom to ask is missing: --url, or --store on the machine of the server', {
      hint: 'writ fleet status --url https://fleet.example.net --token-file fleet.token',
    });
  if (tokenFile === undefined)
    throw new WritError('USAGE', '--token-file is missing', {
      hint: 'Make a token beside the server: writ fleet token create --for people --store S',
    });
  const { openServerDoor } = await import('./server-door.js');
  return openServerDoor({ url, tokenFile: context.at(tokenFile), clock: context.clock });
}
