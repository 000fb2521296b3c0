// `writ fleet hosts`: the hosts of a filter, by name.
import type { HostLine } from '../../../core/fleet/answers.js';
import { parseHostFilter } from '../../../core/fleet/host-filter.js';
import { given } from '../../../core/given.js';
import type { CommandDefinition } from '../../console/command.js';
import { numberFlag } from '../../console/flag-values.js';
import { type FlagValues, preset } from '../../console/flags.js';
import type { FleetClient } from '../../fleet/fleet-client.js';
import { fleetClientFlags, withFleetClient } from '../../fleet/open-fleet-client.js';
import { showHosts } from '../../show/show-fleet.js';

const flags = {
  ...fleetClientFlags,
  where: preset(
    '--where <filter>',
    'KEY=VALUE, several with commas: state, bundle, channel, serial, standing, code, host, health, version, root, kind, label.NAME',
    '',
  ),
  limit: preset('--limit <n>', 'hosts to list at most', 1000, numberFlag(1, 100_000)),
};

export const command: CommandDefinition<FlagValues<typeof flags>> = {
  examples: [
    'writ fleet hosts --where state=rejected,bundle=dns-edge,label.site=fra',
    'writ fleet hosts --where state=silent --json',
  ],
  exitCodes: ['0  listed, also when no host matches', '1  nobody answered', '2  usage, or an unknown filter'],
  flags,
  run: async (_args, flags, context) => {
    // Check the filter here, because a hint of the server would name another command line.
    parseHostFilter(flags.where);
    const { hosts, more } = await withFleetClient(flags, context, (client) => readAll(client, flags));
    const outcome = hosts.length === 0 ? 'empty' : 'found';
    return { outcome, details: { hosts, more }, lines: showHosts(hosts, more, context.clock.nowMs()) };
  },
};

const pageSize = 500;

async function readAll(
  client: FleetClient,
  { where, limit }: { readonly where: string; readonly limit: number },
) {
  const hosts: HostLine[] = [];
  let after: string | undefined;
  do {
    const page = await client.hosts({
      where,
      limit: Math.min(pageSize, limit - hosts.length),
      ...given({ after }),
    });
    hosts.push(...page.hosts);
    after = page.next;
  } while (after !== undefined && hosts.length < limit);
  return { hosts, more: after !== undefined };
}
