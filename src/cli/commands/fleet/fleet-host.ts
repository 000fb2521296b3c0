// `writ fleet host`: one host with all that is known of it; and the two things a person decides about one.
import { WritError } from '../../../core/errors.js';
import type { Answer, CommandDefinition } from '../../console/command.js';
import { askFleet, type DoorFlags, doorFlags } from '../../fleet/fleet-door.js';
import { showHost } from '../../show/show-fleet.js';

const verbs = ['approve', 'retire'] as const;

export const command: CommandDefinition<DoorFlags> = {
  examples: [
    'writ fleet host edge-fra1-03 --url https://fleet.example.net --token-file fleet.token',
    'writ fleet host approve 3f9a1c20 --store /var/lib/writ-fleet',
    'writ fleet host retire edge-fra1-03 --store /var/lib/writ-fleet',
  ],
  exitCodes: [
    '0  shown, approved or retired',
    '1  no answer, no such host, or the token does not allow it',
    '2  usage, or several hosts have this name',
  ],
  args: [
    ['<name>', 'a name that one host has, or the first digits of its key; approve or retire before it'],
    ['[host]', 'whom to approve or to retire'],
  ],
  flags: doorFlags,
  acts: ([, second]) => second !== undefined,
  run: async ([first = '', second], flags, context) => {
    if (second === undefined) {
      const { schema: _, type: _type, ...host } = await askFleet(flags, context, (door) => door.host(first));
      const lines = showHost({ schema: 1, type: 'fleet.host', ...host }, context.clock.nowMs());
      return { outcome: 'found', details: { ...host }, lines };
    }
    const verb = verbs.find((one) => one === first);
    if (verb === undefined)
      throw new WritError('USAGE', `${first} is not a verb of writ fleet host`, {
        hint: 'approve, or retire.',
      });
    const { key, host } = await askFleet(flags, context, (door) => door.changeHost(second, verb));
    return changed(verb, key, host);
  },
};

function changed(verb: (typeof verbs)[number], key: string, host: string): Answer {
  if (verb === 'approve')
    return { outcome: 'approved', details: { key, host }, lines: [`APPROVED  ${host}  ${key}`] };
  const lines = [
    `RETIRED   ${host}  ${key}`,
    '  Its key is refused for ever; the host itself is not changed, and goes on with its policy.',
    '  It comes back by enrolling with a new key: writ help FLEET_KEY_RETIRED.',
  ];
  return { outcome: 'retired', details: { key, host }, lines };
}
