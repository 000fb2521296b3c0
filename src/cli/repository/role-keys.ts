// Values of flags for a role, or for keys of a role, as `timestamp`, `targets=new.pub,spare.pub` and `dns-team=dns.pub`.
import { InvalidArgumentError } from '#commander';
import { WritError } from '../../core/errors.js';
import { type TopLevelRole, topLevelRoles } from '../../core/tuf/tuf-metadata.js';
import { type PublicKey, readPublicKey } from '../../publisher/keys/public-key.js';
import type { CommandContext } from '../console/command.js';

/** @returns the top-level role; the root does not change delegated roles. @throws an error of commander for any other text */
export function roleFlag(text: string): TopLevelRole {
  const role = topLevelRoles.find((name) => name === text);
  if (role !== undefined) return role;
  throw new InvalidArgumentError(`A role of the root is wanted: ${topLevelRoles.join(', ')}.`);
}

/**
 * @param text as `timestamp=timestamp-2.pub`, or with several files after commas
 * @returns the top-level role, and the public keys in the given order. @throws WritError USAGE, KEY_UNREADABLE
 */
export function roleKeys(
  text: string,
  { at }: Pick<CommandContext, 'at'>,
): { role: TopLevelRole; keys: readonly PublicKey[] } {
  const [, name, files] = /^([a-z]+)=(.+)$/s.exec(text) ?? [];
  const role = topLevelRoles.find((one) => one === name);
  if (role === undefined || files === undefined) {
    throw new WritError('USAGE', 'keys for a role are written ROLE=FILE, or ROLE=FILE,FILE', {
      facts: { actual: text.slice(0, 100) },
      hint: 'As --replace timestamp=timestamp-2.pub.',
    });
  }
  return { role, keys: files.split(',').map((path) => readPublicKey(at(path))) };
}

/**
 * @param texts as `dns-team=dns.pub`, or with complete key ids in place of files; a role may be repeated
 * @returns the key ids of each role
 * @throws WritError USAGE, KEY_UNREADABLE
 */
export function teamKeysOf(
  texts: readonly string[],
  { at }: Pick<CommandContext, 'at'>,
): ReadonlyMap<string, readonly string[]> {
  const keys = new Map<string, readonly string[]>();
  for (const text of texts) {
    const [, role = '', list] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
    if (list === undefined) {
      throw new WritError('USAGE', 'the key of a team is written ROLE=FILE, or ROLE=KEYID', {
        facts: { actual: text.slice(0, 100) },
        hint: 'As --team-key dns-team=dns-team.pub.',
      });
    }
    const ids = list.split(',').map((one) => (isKeyId(one) ? one : readPublicKey(at(one)).keyId));
    keys.set(role, [...(keys.get(role) ?? []), ...ids]);
  }
  return keys;
}

function isKeyId(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}
