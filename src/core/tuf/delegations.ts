// What a targets file says about the roles it delegates to (specification 4.5), read strictly. Owns the names
// that a delegated role may have, as they become names of files and of URLs; the search is target-search's.
import { isWellFormed } from '../text/canonical-json.js';
import type { JsonObject, JsonValue } from '../text/strict-json.js';
import {
  arrayAt,
  checkKey,
  checkRoleKeys,
  malformed,
  objectAt,
  optionalBooleanAt,
  stringAt,
} from './metadata-members.js';

/**
 * @param name who delegates, for the refusal
 * @throws WritError METADATA_MALFORMED
 */
export function checkDelegations(name: string, value: JsonValue): void {
  const delegations = objectAt(name, value, 'delegations');
  for (const [id, key] of Object.entries(objectAt(name, delegations['keys'], 'delegations.keys'))) {
    checkKey(name, key, `delegations.keys.${id.slice(0, 12)}`);
  }
  const seen = new Set<string>();
  for (const item of arrayAt(name, delegations['roles'], 'delegations.roles')) {
    const role = objectAt(name, item, 'delegations.roles[]');
    const own = stringAt(name, role['name'], 'delegations.roles[].name');
    // 4.5: unique, or two thresholds would stand for one file and a reader could take the weaker one.
    if (!isDelegatedName(own) || seen.has(own)) throw malformed(name, 'delegations.roles[].name');
    seen.add(own);
    checkDelegatedRole(name, role, `delegations.roles.${own}`);
  }
}

function checkDelegatedRole(name: string, role: JsonObject, where: string): void {
  checkRoleKeys(name, role, where);
  optionalBooleanAt(name, role['terminating'], `${where}.terminating`);
  const { paths, path_hash_prefixes: prefixes } = role;
  // With both, one reader would go by the one and the next by the other.
  if ((paths === undefined) === (prefixes === undefined)) throw malformed(name, `${where}.paths`);
  if (paths !== undefined) {
    for (const path of arrayAt(name, paths, `${where}.paths`)) stringAt(name, path, `${where}.paths[]`);
    return;
  }
  for (const prefix of arrayAt(name, prefixes, `${where}.path_hash_prefixes`)) {
    const isHex = /^[0-9a-f]{1,64}$/.test(stringAt(name, prefix, `${where}.path_hash_prefixes[]`));
    if (!isHex) throw malformed(name, `${where}.path_hash_prefixes[]`);
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
