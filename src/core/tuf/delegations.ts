// Strict checks of the `delegations` of a targets file (specification 4.5), and the names that a delegated role may have: they
// become names of files and URLs. target-search.ts has the search.
import { isWellFormed } from '../text/canonical-json.js';
import type { JsonObject, JsonValue } from '../text/strict-json.js';
import * as at from './metadata-members.js';

/**
 * @param name of the delegating role, for the error
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
    // 4.5: the name is unique. Otherwise one file would have two thresholds, and a reader could apply the weaker one.
    if (!isDelegatedName(own) || seen.has(own)) throw at.malformed(name, 'delegations.roles[].name');
    seen.add(own);
    checkDelegatedRole(name, role, `delegations.roles.${own}`);
  }
}

function checkDelegatedRole(name: string, role: JsonObject, where: string): void {
  at.checkRoleKeys(name, role, where);
  at.optionalBoolean(name, role['terminating'], `${where}.terminating`);
  const { paths, path_hash_prefixes: prefixes } = role;
  // With both members, two readers could apply different ones.
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
/** A name of this length with a version and `.json` fits into the 255 bytes of a file name. */
const maxFileNameBytes = 200;

/**
 * Rejects the names of the top-level roles: the file of a delegated role would replace theirs, and its keys would sign where only
 * keys of the root may.
 */
export function isDelegatedName(name: string): boolean {
  if (name === '' || topLevelNames.includes(name) || !isWellFormed(name)) return false;
  return roleFileName(name).length <= maxFileNameBytes;
}

/**
 * @param name of a role from metadata, which may be any text, as `../x`, `a?b` or `#`
 * @returns the name as one segment of a URL and as the name of one file, without `.json`; the result is unique for each name
 */
export function roleFileName(name: string): string {
  return encodeURIComponent(name);
}
