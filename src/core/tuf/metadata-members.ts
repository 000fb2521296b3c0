// Readers of single members of an untrusted metadata file. Each returns the member with the required type, or throws an error with
// the role of the file (`name`, as `root` or `dns-team`) and the member. The structure of files is in tuf-metadata.ts and
// delegations.ts.
import { WritError } from '../errors.js';
import type { JsonObject, JsonValue } from '../text/strict-json.js';

/**
 * @param where the member, as `signed.roles`, for the error
 * @returns the value.
 * @throws WritError METADATA_MALFORMED where it is missing or no object
 */
export function object(name: string, value: JsonValue | undefined, where: string): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw malformed(name, where);
}

/**
 * @param where the member, for the error
 * @returns the value.
 * @throws WritError METADATA_MALFORMED where it is missing or no array
 */
export function array(name: string, value: JsonValue | undefined, where: string): readonly JsonValue[] {
  if (Array.isArray(value)) return value;
  throw malformed(name, where);
}

/**
 * @param where the member, for the error
 * @returns the value.
 * @throws WritError METADATA_MALFORMED where it is missing or no string
 */
export function string(name: string, value: JsonValue | undefined, where: string): string {
  if (typeof value === 'string') return value;
  throw malformed(name, where);
}

/**
 * Accepts a missing member.
 * @param where the member, for the error
 * @throws WritError METADATA_MALFORMED for a value that is no boolean
 */
export function optionalBoolean(name: string, value: JsonValue | undefined, where: string): void {
  if (value !== undefined && typeof value !== 'boolean') throw malformed(name, where);
}

/**
 * For versions, lengths and thresholds. The parser has already rejected numbers that are not safe integers.
 * @throws WritError METADATA_MALFORMED for a number below 1
 */
export function count(name: string, value: JsonValue | undefined, where: string): number {
  if (typeof value === 'number' && value >= 1) return value;
  throw malformed(name, where);
}

/**
 * Checks the members of a public key (specification 4.2.2).
 * @throws WritError METADATA_MALFORMED
 */
export function checkKey(name: string, value: JsonValue, where: string): void {
  const key = object(name, value, where);
  string(name, key['keytype'], `${where}.keytype`);
  string(name, key['scheme'], `${where}.scheme`);
  string(name, object(name, key['keyval'], `${where}.keyval`)['public'], `${where}.keyval.public`);
}

/**
 * Checks the key ids and the threshold of a role.
 * @throws WritError METADATA_MALFORMED
 */
export function checkRoleKeys(name: string, value: JsonValue | undefined, where: string): void {
  const keys = object(name, value, where);
  for (const id of array(name, keys['keyids'], `${where}.keyids`)) string(name, id, `${where}.keyids[]`);
  // A threshold of 0 would make unsigned metadata valid.
  count(name, keys['threshold'], `${where}.threshold`);
}

/**
 * @param where path of the member, as `roles.snapshot.threshold`. It is cut to 200 characters and `name` to 100, because
 *   untrusted metadata can make them long.
 * @returns the error METADATA_MALFORMED with the facts `role` and `member`. It is not thrown here. Example of its message:
 *   `root: expires is missing or wrong`
 */
export function malformed(name: string, where: string): WritError {
  const role = name.slice(0, 100);
  const member = where.slice(0, 200);
  const facts = { role, member };
  return new WritError('METADATA_MALFORMED', `${role}: ${member} is missing or wrong`, { facts });
}

/** @returns the error for bytes that are not strict JSON */
export function noJson(name: string, { reason, offset }: { reason: string; offset: number }): WritError {
  const role = name.slice(0, 100);
  return new WritError('METADATA_MALFORMED', `${role}: no strict JSON at ${offset}: ${reason}`, {
    facts: { role, member: `JSON: ${reason}`, offset },
  });
}
