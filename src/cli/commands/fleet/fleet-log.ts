// `writ fleet log`: the changes of the fleet with their callers, the newest first.
import type { CommandDefinition } from '../../console/command.js';
import { numberFlag } from '../../console/flag-values.js';
import { type FlagValues, preset } from '../../console/flags.js';
import { fleetClientFlags, withFleetClient } from '../../fleet/open-fleet-client.js';
import { showLog } from '../../show/show-fleet.js';

const flags = {
  ...fleetClientFlags,
  limit: preset('-n, --limit <n>', 'changes to show', 50, numberFlag(1, 1000)),
};

export const command: CommandDefinition<FlagValues<typeof flags>> = {
  examples: ['writ fleet log --store /var/lib/writ-fleet', 'writ fleet log -n 500 --json'],
  exitCodes: ['0  listed', '1  nobody answered', '2  usage'],
  flags,
  run: async (_args, flags, context) => {
    const page = await withFleetClient(flags, context, (client) => client.log({ limit: flags.limit }));
    const { entries } = page;
    return { outcome: entries.length === 0 ? 'empty' : 'found', details: { entries }, lines: showLog(page) };
  },
};
