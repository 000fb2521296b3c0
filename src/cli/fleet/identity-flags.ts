// Flags of `writ fleet serve` that trust a proxy to name the signed-in person. The header needs the addresses of the proxy, because
// without them any client could name any person.
import { InvalidArgumentError } from '#commander';
import { WritError } from '../../core/errors.js';
import type { Role } from '../../core/fleet/answers.js';
import {
  type IdentityRule,
  parseIdentityHeader,
  parseIdentityNetworks,
} from '../../fleet/http/identity-rules.js';
import { repeatedFlag } from '../console/flag-values.js';
import { type FlagValues, optional } from '../console/flags.js';

export const identityFlags = {
  identityHeader: optional(
    '--identity-header <name>',
    'header in which a proxy names the person that it signed in; accepted only from --identity-from',
    headerFlag,
  ),
  identityFrom: optional(
    '--identity-from <address|network>',
    'address whose header is accepted, for example 192.0.2.1 or 10.0.0.0/24; may be repeated',
    repeatedFlag(networkFlag),
  ),
  identityRole: optional(
    '--identity-role <role>',
    'role of such a person: view, detail or operate',
    roleFlag,
  ),
};

/**
 * @returns undefined without these flags
 * @throws WritError USAGE for a header without addresses, and for addresses or a role without a header
 */
export function parseIdentityRule({
  identityHeader: header,
  identityFrom: networks,
  identityRole: role = 'view',
}: FlagValues<typeof identityFlags>): IdentityRule | undefined {
  const from = networks && parseIdentityNetworks(networks);
  if (header !== undefined && from !== undefined) return { header, from, role };
  if (networks !== undefined && from === undefined)
    throw new WritError('USAGE', '--identity-from is given too often: at most 32');
  if (header !== undefined)
    throw new WritError('USAGE', '--identity-from is missing: the addresses whose header is accepted');
  if (networks === undefined && role === 'view') return undefined;
  throw new WritError('USAGE', '--identity-header is missing: --identity-from and --identity-role need it');
}

function headerFlag(text: string): string {
  const name = parseIdentityHeader(text);
  if (name !== undefined) return name;
  throw new InvalidArgumentError(
    'Give the name of a header for this purpose only, for example X-Remote-User.',
  );
}

function networkFlag(text: string): string {
  if (parseIdentityNetworks([text]) !== undefined) return text;
  throw new InvalidArgumentError(
    'Give an IP address, or a network such as 10.0.0.0/24; at most /8 for IPv4 and /16 for IPv6.',
  );
}

function roleFlag(text: string): Role {
  if (text === 'view' || text === 'detail' || text === 'operate') return text;
  throw new InvalidArgumentError('Give view, detail or operate.');
}
