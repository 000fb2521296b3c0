// `writ fleet history`: which hosts ran or refused a release, from when to when; or which releases a host did.
import { WritError } from '../../../core/errors.js';
import type { ReleaseInterval } from '../../../core/fleet/history-answers.js';
import { given } from '../../../core/given.js';
import { isName } from '../../../core/names.js';
import { parseSerial } from '../../../core/release/serial.js';
import type { CommandDefinition } from '../../console/command.js';
import { nameFlag, numberFlag } from '../../console/flag-values.js';
import { type FlagValues, optional, preset } from '../../console/flags.js';
import type { FleetClient, HistorySelector } from '../../fleet/fleet-client.js';
import { fleetClientFlags, withFleetClient } from '../../fleet/open-fleet-client.js';
import { showIntervals } from '../../show/show-fleet.js';

const flags = {
  ...fleetClientFlags,
  host: optional('--host <host>', 'releases of this host: its name, or the first digits of its key'),
  channel: preset('--channel <name>', 'channel of the bundle', 'stable', nameFlag),
  limit: preset('-n, --limit <n>', 'intervals to list at most, the newest', 100, numberFlag(1, 100_000)),
};
type HistoryFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<HistoryFlags> = {
  examples: [
    'writ fleet history dns-edge 42 --url https://fleet.example.net --token-file fleet.token',
    'writ fleet history --host edge-fra1-03 --store /var/lib/writ-fleet --json',
  ],
  exitCodes: ['0  listed, also when nothing is known', '1  no answer, or no such host', '2  usage'],
  args: [
    ['[bundle]', 'name of the bundle; none with --host'],
    ['[serial]', 'serial of the release'],
  ],
  flags,
  run: async ([bundle, serial], flags, context) => {
    const of = subjectOf(bundle, serial, flags);
    const { intervals, more } = await withFleetClient(flags, context, (client) =>
      readAll(client, of, flags.limit),
    );
    return {
      outcome: intervals.length === 0 ? 'empty' : 'found',
      details: { intervals, more },
      lines: showIntervals(intervals, more, 'host' in of ? 'release' : 'host'),
    };
  },
};

function subjectOf(
  bundle: string | undefined,
  serialText: string | undefined,
  { host, channel }: HistoryFlags,
): HistorySelector {
  if (host !== undefined && bundle === undefined) return { host };
  if (host !== undefined || bundle === undefined || serialText === undefined)
    throw new WritError('USAGE', 'give a bundle and a serial, or --host', {
      hint: 'writ fleet history dns-edge 42, or writ fleet history --host edge-fra1-03.',
    });
  if (!isName(bundle)) throw new WritError('USAGE', `${JSON.stringify(bundle)} is not a bundle name`);
  const serial = parseSerial(serialText);
  if (serial === undefined) throw new WritError('USAGE', `${JSON.stringify(serialText)} is not a serial`);
  return { bundle, channel, serial };
}

const pageSize = 500;

async function readAll(client: FleetClient, of: HistorySelector, limit: number) {
  const intervals: ReleaseInterval[] = [];
  let after: string | undefined;
  do {
    const wanted = Math.min(pageSize, limit - intervals.length);
    const page = await client.history({ of, limit: wanted, ...given({ after }) });
    intervals.push(...page.intervals);
    after = page.next;
  } while (after !== undefined && intervals.length < limit);
  return { intervals, more: after !== undefined };
}
