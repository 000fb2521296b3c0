// `writ fleet host`: shows one host, approves or retires it, or retires all hosts that a token enrolled. The last exists
// because the holder of a stolen token chose the names and the number of its hosts.
import { WritError } from '../../../core/errors.js';
import { isOpaKey, retiredOpaHint } from '../../../core/fleet/host-names.js';
import type { RetiredHosts } from '../../../core/fleet/token-answers.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { type FlagValues, optional, toggle } from '../../console/flags.js';
import { askYes } from '../../console/questions.js';
import { fleetClientFlags, withFleetClient } from '../../fleet/open-fleet-client.js';
import { showHost } from '../../show/show-fleet.js';
import { counted } from '../../show/show-text.js';

const verbs = ['approve', 'retire'] as const;

const flags = {
  ...fleetClientFlags,
  token: optional('--token <id>', 'retire: every host that this token enrolled, also those that wait'),
  yes: toggle('-y, --yes', 'retire without asking; without a terminal there is no question'),
};
type HostFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<HostFlags> = {
  examples: [
    'writ fleet host edge-fra1-03 --url https://fleet.example.net --token-file fleet.token',
    'writ fleet host approve 3f9a1c20 --store /var/lib/writ-fleet',
    'writ fleet host retire edge-fra1-03 --store /var/lib/writ-fleet',
    'writ fleet host retire --token d8d945acd203 --store /var/lib/writ-fleet',
  ],
  exitCodes: [
    '0  shown, approved or retired',
    '1  no answer, no such host or token, or the token of the caller does not allow it',
    '2  usage, or several hosts have this name',
  ],
  args: [
    ['<name>', 'a name that one host has, or the first digits of its key; approve or retire before it'],
    ['[host]', 'whom to approve or to retire'],
  ],
  flags,
  acts: ([, second], { token }) => second !== undefined || token !== undefined,
  run: async ([first = '', second], flags, context) => {
    if (flags.token !== undefined) return retireAllOf(flags.token, [first, second], flags, context);
    if (second === undefined) {
      const {
        schema: _,
        type: _type,
        ...host
      } = await withFleetClient(flags, context, (client) => client.host(first));
      const lines = showHost({ schema: 1, type: 'fleet.host', ...host }, context.clock.nowMs());
      return { outcome: 'found', details: { ...host }, lines };
    }
    const verb = verbs.find((one) => one === first);
    if (verb === undefined)
      throw new WritError('USAGE', `${first} is not a verb of writ fleet host`, {
        hint: 'approve, or retire.',
      });
    const done = await withFleetClient(flags, context, async (client) => {
      if (verb === 'approve') return client.changeHost(second, verb);
      const { key, host } = await client.host(second);
      // Retire by key, because the name may belong to another host when the user confirms.
      const what = isOpaKey(key) ? key : `${host} (${key.slice(0, 12)})`;
      return (await mayRetire(what, flags, context)) ? client.changeHost(key, verb) : undefined;
    });
    return done === undefined ? leftAlone(second) : changed(verb, done.key, done.host);
  },
};

function changed(verb: (typeof verbs)[number], key: string, host: string): Answer {
  if (verb === 'approve')
    return { outcome: 'approved', details: { key, host }, lines: [`APPROVED  ${host}  ${key}`] };
  if (isOpaKey(key)) {
    const lines = [
      `RETIRED   ${host}  ${key}`,
      '  The server refuses its status and does not show it; OPA itself is not changed.',
      `  ${retiredOpaHint}`,
    ];
    return { outcome: 'retired', details: { key, host }, lines };
  }
  const lines = [
    `RETIRED   ${host}  ${key}`,
    '  Its key is refused for ever; the host itself is not changed, and goes on with its policy.',
    '  It comes back by enrolling with a new key: writ help FLEET_KEY_RETIRED.',
  ];
  return { outcome: 'retired', details: { key, host }, lines };
}

/** Requires a confirmation only at a terminal, because scripts of earlier versions retire without a flag. */
async function mayRetire(what: string, flags: HostFlags, context: CommandContext): Promise<boolean> {
  if (!context.canAsk) return true;
  const effect = isOpaKey(what) ? 'Its status is refused.' : 'A refused key is never accepted again.';
  return askYes(`Retire ${what}? ${effect}`, flags, context);
}

function leftAlone(what: string): Answer {
  const lines = [`NOT CHANGED ${what}`, 'Nothing was written'];
  return { outcome: 'left-alone', details: { changed: false }, lines };
}

async function retireAllOf(
  id: string,
  [verb, host]: readonly [string, string | undefined],
  flags: HostFlags,
  context: CommandContext,
): Promise<Answer> {
  if (verb !== 'retire' || host !== undefined)
    throw new WritError('USAGE', '--token is only used with retire, and without a host', {
      hint: `writ fleet host retire --token ${id} --store S`,
    });
  if (!(await mayRetire(`every host of token ${id}`, flags, context))) return leftAlone(`token ${id}`);
  const { retired, state, kind } = await withFleetClient(flags, context, async (client) => {
    let retired = 0;
    for (let afterKey: string | undefined = ''; afterKey !== undefined; ) {
      const part: RetiredHosts = await client.retireHostsOf(id, afterKey);
      ({ afterKey } = part);
      retired += part.retired;
      context.reporter.begin('retire', counted(retired, 'host'));
    }
    const token = (await client.tokens()).find((one) => one.id === id);
    return { retired, state: token?.state, kind: token?.kind };
  });
  const lines = [
    `RETIRED   ${counted(retired, 'host')} of token ${id}`,
    kind === 'opa'
      ? '  The server refuses their status; the OPAs themselves are not changed.'
      : '  Their keys are refused for ever; the hosts themselves are not changed, and go on with their policy.',
  ];
  // While the token is valid, its holder can enrol the same hosts again with new keys.
  const next = state === 'good' ? `writ fleet token revoke ${id}` : undefined;
  return { outcome: 'retired', details: { token: id, retired }, lines, next };
}
