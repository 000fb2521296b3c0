// `writ fleet token`: makes, lists and revokes tokens, on the store beside a running server or over its API. A new token is
// printed once and stored nowhere.
import { InvalidArgumentError } from '#commander';
import { WritError } from '../../../core/errors.js';
import { roles } from '../../../core/fleet/answers.js';
import type { TokenLine } from '../../../core/fleet/token-answers.js';
import { given } from '../../../core/given.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { durationFlag, numberFlag, repeatedFlag } from '../../console/flag-values.js';
import { type FlagValues, optional } from '../../console/flags.js';
import { fleetClientFlags, withFleetClient } from '../../fleet/open-fleet-client.js';
import { counted, minuteTime, table } from '../../show/show-text.js';

const kinds = ['hosts', 'people', 'opa'] as const;

const flags = {
  ...fleetClientFlags,
  for: optional('--for <kind>', 'create: hosts, people or opa', oneOf(kinds)),
  role: optional(
    '--role <role>',
    'create for people: view (codes), detail (also lines and outputs), operate (also changes)',
    oneOf(roles),
  ),
  note: optional('--note <text>', 'create: a note, shown in the list'),
  uses: optional(
    '--uses <n>',
    'create: how many enrolments it allows; default: no limit',
    numberFlag(1, Number.MAX_SAFE_INTEGER),
  ),
  expires: optional('--expires <duration>', 'create: how long it is valid, for example 30d', durationFlag),
  hosts: optional('--hosts <glob>', "create for hosts: host names that it can enrol, for example 'edge-*'"),
  label: optional(
    '--label <name=value>',
    'create for hosts: a label that it sets; may be repeated',
    repeatedFlag(labelFlag),
  ),
};
type TokenFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<TokenFlags> = {
  examples: [
    'writ fleet token create --for people --role operate --store /var/lib/writ-fleet',
    "writ fleet token create --for hosts --uses 50 --expires 1d --hosts 'edge-*' --label site=fra --store /var/lib/writ-fleet",
    'writ fleet token create -q --for hosts --store /var/lib/writ-fleet > fleet.token',
    'writ fleet token list --store /var/lib/writ-fleet',
  ],
  exitCodes: [
    '0  created, listed or revoked',
    '1  no answer, no such token, or the token does not allow it',
    '2  usage',
  ],
  args: [
    ['<action>', 'create, list or revoke'],
    ['[id]', 'revoke: which one, by the id of the list'],
  ],
  firstArguments: ['create', 'list', 'revoke'],
  quiet: 'nothing',
  flags,
  acts: ([action]) => action !== 'list',
  run: async ([action, id], flags, context) => {
    if (action === 'create' && id === undefined) return create(flags, context);
    if (action === 'list' && id === undefined) return list(flags, context);
    if (action === 'revoke' && id !== undefined) return revoke(id, flags, context);
    throw new WritError('USAGE', 'writ fleet token needs create, list, or revoke with an id', {
      hint: 'writ fleet token create --for hosts --store S',
    });
  },
};

async function create(flags: TokenFlags, context: CommandContext): Promise<Answer> {
  const { for: kind, role, note, uses, expires: lifetimeMs, hosts } = flags;
  if (kind === undefined) throw new WritError('USAGE', '--for is missing: hosts, people or opa');
  const labels = flags.label === undefined ? undefined : Object.fromEntries(flags.label);
  const wanted = { kind, ...given({ role, note, uses, lifetimeMs, hosts, labels }) };
  const { id, token } = await withFleetClient({ ...flags, createsStore: true }, context, (client) =>
    client.createToken(wanted),
  );
  const lines = [`CREATED   ${id} for ${kind}${kind === 'people' ? `, role ${role ?? 'view'}` : ''}`, token];
  // With --quiet print only the token, because scripts write it into a file.
  const kept = [token];
  return { outcome: 'created', details: { id, token }, lines, kept, undo: `writ fleet token revoke ${id}` };
}

async function list(flags: TokenFlags, context: CommandContext): Promise<Answer> {
  const tokens = await withFleetClient(flags, context, (client) => client.tokens());
  const lines = showTokens(tokens);
  return { outcome: tokens.length === 0 ? 'empty' : 'found', details: { tokens }, lines, kept: lines };
}

async function revoke(id: string, flags: TokenFlags, context: CommandContext): Promise<Answer> {
  await withFleetClient(flags, context, (client) => client.revokeToken(id));
  const lines = [
    `REVOKED   ${id}`,
    '  Its sessions have ended; hosts that it enrolled keep reporting with their own keys.',
  ];
  return { outcome: 'revoked', details: { id }, lines };
}

function oneOf<T extends string>(choices: readonly T[]): (text: string) => T {
  return (text) => {
    const choice = choices.find((one) => one === text);
    if (choice === undefined) throw new InvalidArgumentError(`One of ${choices.join(', ')} is wanted.`);
    return choice;
  };
}

function labelFlag(text: string): readonly [name: string, value: string] {
  const at = text.indexOf('=');
  if (at < 1 || text.length > 400) throw new InvalidArgumentError('Give NAME=VALUE, for example site=fra.');
  return [text.slice(0, at), text.slice(at + 1)];
}

function showTokens(tokens: readonly TokenLine[]): string[] {
  if (tokens.length === 0) return ['EMPTY     there is no token'];
  const rows = tokens.map((one) => [
    ...[one.id, one.kind, one.role ?? '', one.state, one.usesLeft === undefined ? '' : String(one.usesLeft)],
    ...[
      one.expiresAtMs === undefined ? 'never' : minuteTime(one.expiresAtMs),
      one.hosts ?? '',
      one.note ?? '',
    ],
  ]);
  const columns = ['id', 'for', 'role', 'state', { right: 'uses left' }, 'ends', 'hosts', 'note'];
  return [`FOUND     ${counted(tokens.length, 'token')}`, ...table(columns, rows)];
}
