// What a targets file says about the roles it delegates to (specification 4.5), read strictly. Owns the names
// that a delegated role may have, as they become names of files and of URLs; the search is target-search's.
import { isWellFormed } from '../text/canonical-json.js';
import type { JsonObject, JsonValue } from '../text/strict-json.js';
import * as at from './metadata-members.js';

/**
 * @param name who delegates, for the refusal
 * @throws WritError METADATA_MALFORMED
 */
export function checkDelegations(name: string, value: JsonValue): void {
  const delegations = at.object(name, value, 'delegations');
  for (const [id, key] of Object.entries(at.object(name, delegations['keys'], 'delegations.keys'))) {
    at.checkKey(name, key, `delegations.keys.${id.slice(0, 12)}`);
  }
  const seen = new Set<string>();
  for (const item of at.array(name, delegations['roles'], 'delegations.roles')) {
    const role = at.object(name, item, 'delegations.roles[]');
    const own = at.string(name, role['name'], 'delegations.roles[].name');
    // 4.5: unique, or two thresholds would stand for one file and a reader could take the weaker one.
    if (!isDelegatedName(own) || seen.has(own)) throw at.malformed(name, 'delegations.roles[].name');
    seen.add(own);
    checkDelegatedRole(name, role, `delegations.roles.${own}`);
  }
}

function checkDelegatedRole(name: string, role: JsonObject, where: string): void {
  at.checkRoleKeys(name, role, where);
  at.optionalBoolean(name, role['terminating'], `${where}.terminating`);
  const { paths, path_hash_prefixes: prefixes } = role;
  // With both, one reader would go by the one and the next by the other.
  if ((paths === undefined) === (prefixes === undefined)) throw at.malformed(name, `${where}.paths`);
  if (paths !== undefined) {
    for (const path of at.array(name, paths, `${where}.paths`)) at.string(name, path, `${where}.paths[]`);
    return;
  }
  for (const prefix of at.array(name, prefixes, `${where}.path_hash_prefixes`)) {
    const isHex = /^[0-9a-f]{1,64}$/.test(at.string(name, prefix, `${where}.path_hash_prefixes[]`));
    if (!isHex) throw at.malformed(name, `${where}.path_hash_prefixes[]`);
  }
}

const topLevelNames: readonly string[] = ['root', 'timestamp', 'snapshot', 'targets'];
/** With a version before it and `.json` behind it, a name of this length still fits into 255 bytes. */
const maxFileNameBytes = 200;

/**
 * A delegated role may have any name but those of the top-level roles: its file would take the place of
 * theirs, and its keys would speak where only the root's do.
 */
export function isDelegatedName(name: string): boolean {
  if (name === '' || topLevelNames.includes(name) || !isWellFormed(name)) return false;
  return roleFileName(name).length <= maxFileNameBytes;
}

/**
 * @param name of a role; metadata may put anything into it, as `../x`, `a?b` or `#`
 * @returns the name as one segment of a URL and as the name of one file, without `.json`; different names
 *   never become one
 */
export function roleFileName(name: string): string {
  return encodeURIComponent(name);
}
