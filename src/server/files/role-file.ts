// Parses a metadata file of the server's own repository: version, expiry, and the versions that it lists. Pure. Verifies no
// signature, because the server has no trusted root, and hosts verify for themselves.

import { WritError } from '../../core/errors.js';
import { parseIsoTime } from '../../core/release/release.js';
import { parseStrictJson } from '../../core/text/strict-json.js';
import { isVersion } from '../../core/tuf/metadata-version.js';
import type { TopLevelRole } from '../../core/tuf/tuf-metadata.js';

export interface RoleFile {
  readonly version: number;
  /** Epoch milliseconds. */
  readonly expiresMs: number;
  /** `writ.signedAt`, where the file has it. */
  readonly signedAtMs?: number;
  /** Versions by file name, as `targets.json`; empty for root and targets. */
  readonly meta: ReadonlyMap<string, number>;
  /** Of a snapshot: for each role with restarted versions, the highest version before (adr/0073). */
  readonly restartedAfter: ReadonlyMap<string, number>;
  /** The key ids of the file's signatures, which are not verified. */
  readonly signedBy: ReadonlySet<string>;
  /** Of a root: the key ids of each role. */
  readonly keyIds: ReadonlyMap<string, readonly string[]>;
  /** Names of the roles that targets delegate to; empty for every other role. */
  readonly delegated: readonly string[];
}

/** @throws WritError METADATA_MALFORMED naming the member that is wrong */
export function parseRoleFile(bytes: Uint8Array, role: TopLevelRole): RoleFile {
  const fail = (member: string): never => {
    throw new WritError('METADATA_MALFORMED', `${role}: ${member} is missing or wrong`, {
      facts: { role, member },
    });
  };
  const file = parseJson(bytes) ?? fail('JSON');
  const signed = member(file, 'signed');
  if (member(signed, '_type') !== role) return fail('_type');
  const version = versionOf(signed) ?? fail('version');
  const expiresMs = parseIsoTime(member(signed, 'expires')) ?? fail('expires');
  const signedAtMs = parseIsoTime(member(member(signed, 'writ'), 'signedAt'));
  const meta = metaVersions(member(signed, 'meta'));
  const delegated = listOf(member(member(signed, 'delegations'), 'roles')).flatMap((one) =>
    textOf(member(one, 'name')),
  );
  const signedBy = new Set(listOf(member(file, 'signatures')).flatMap((one) => textOf(member(one, 'keyid'))));
  const keyIds = keyIdsOf(member(signed, 'roles'));
  const restartedAfter = versionsAfter(member(member(signed, 'writ'), 'restarts'));
  const known = { version, expiresMs, meta, restartedAfter, signedBy, keyIds, delegated };
  return signedAtMs === undefined ? known : { ...known, signedAtMs };
}

function parseJson(bytes: Uint8Array): unknown {
  const json = parseStrictJson(bytes);
  return json.kind === 'value' ? json.value : undefined;
}

function keyIdsOf(roles: unknown): Map<string, readonly string[]> {
  return new Map(
    entriesOf(roles).map(([name, role]) => [name, listOf(member(role, 'keyids')).flatMap(textOf)]),
  );
}

function metaVersions(meta: unknown): Map<string, number> {
  return new Map(
    entriesOf(meta).flatMap(([name, entry]) => {
      const version = versionOf(entry);
      return version === undefined ? [] : [[name, version] as const];
    }),
  );
}

function versionsAfter(restarts: unknown): Map<string, number> {
  return new Map(
    entriesOf(restarts).flatMap(([role, restart]) => {
      const after = member(restart, 'after');
      return isVersion(after) ? [[role, after] as const] : [];
    }),
  );
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string[] {
  return typeof value === 'string' ? [value] : [];
}

function versionOf(value: unknown): number | undefined {
  const version = member(value, 'version');
  return isVersion(version) ? version : undefined;
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}
