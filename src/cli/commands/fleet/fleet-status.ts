// `writ fleet status`: prints a summary of all hosts, then its parts. The exit code is the level.
import type { CommandDefinition } from '../../console/command.js';
import { type FleetClientFlags, fleetClientFlags, withFleetClient } from '../../fleet/open-fleet-client.js';
import { showSummary } from '../../show/show-fleet.js';

const exitCodes = { ok: 0, warning: 1, critical: 2 } as const;

export const command: CommandDefinition<FleetClientFlags> = {
  examples: [
    'writ fleet status --url https://fleet.example.net --token-file fleet.token',
    'writ fleet status --store /var/lib/writ-fleet --json',
  ],
  exitCodes: [
    '0  every host runs the newest known release, as far as hosts can prove it',
    '1  warning: somebody should look',
    '2  critical: a release was refused or rolled back, a host is blocked, a role has expired, or a key is on two machines',
    '3  no answer; also: usage',
  ],
  failureExitCode: 3,
  quiet: 'nothing',
  flags: fleetClientFlags,
  run: async (_args, flags, context) => {
    const {
      schema: _,
      type: _type,
      ...summary
    } = await withFleetClient(flags, context, (client) => client.summary());
    const { level } = summary;
    const lines = showSummary({ schema: 1, type: 'fleet.summary', ...summary });
    const where = summary.findings.find((one) => one.where !== undefined)?.where;
    const next = where === undefined ? undefined : `writ fleet hosts --where ${where}`;
    return { outcome: level, level, exitCode: exitCodes[level], details: summary, lines, next };
  },
};
