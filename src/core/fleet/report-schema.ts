// The JSON Schemas of host reports and enrolments, with the bounds of report.ts. Unknown members are accepted, because a newer host
// may send more. Texts that become columns contain visible characters only, and no NUL, which PostgreSQL rejects. The build does not
// compile these schemas: every command would load their code, and only a server needs it.
import { namePattern } from '../names.js';
import { latestTimeMs } from '../text/iso-time.js';
import { bakeStates, fleetBounds } from './report.js';

const { maxNameLength, maxLabels, maxBundles, maxGroups, maxOutcomes, maxFindings } = fleetBounds;

const whole = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
const time = { ...whole, maximum: latestTimeMs };
/**
 * The rule of `host.labels`: no character that controls a terminal, reverses the text around it or makes two different names appear
 * equal.
 */
export const plainPattern = '^[\\p{L}\\p{M}\\p{N}\\p{P}\\p{S} ]*$';
const text = (maxLength: number): object => ({
  type: 'string',
  maxLength,
  pattern: plainPattern,
});
const name = { ...text(maxNameLength), minLength: 1 };
/** Requires a letter or digit and no invisible characters, because a person cannot find a blank name in a table. */
export const hostNamePattern = `^(?!.*\\p{Default_Ignorable_Code_Point})(?=.*[\\p{L}\\p{N}])${plainPattern.slice(1)}`;
const hostName = { ...name, pattern: hostNamePattern };
/** Name of a bundle, a channel or a group. A comma is not allowed: in the filters of findings it would begin another condition. */
const plainName = { type: 'string', pattern: namePattern };
const id = { type: 'string', pattern: '^[A-Za-z0-9-]{1,64}$' };
const code = { type: 'string', pattern: '^[A-Z][A-Z0-9_]{0,63}$' };
const digest = { type: 'string', pattern: '^[0-9a-f]{64}$' };
const labels = {
  type: 'object',
  maxProperties: maxLabels,
  propertyNames: name,
  additionalProperties: text(maxNameLength),
};

function members(required: Record<string, object>, optional: Record<string, object> = {}): object {
  return { type: 'object', required: Object.keys(required), properties: { ...required, ...optional } };
}

function listOf(items: object, maxItems: number): object {
  return { type: 'array', maxItems, items };
}

const active = members(
  {
    serial: whole,
    manifest: digest,
    sinceMs: time,
    state: { enum: ['confirmed', 'notified', 'unconfirmed'] },
  },
  { bake: { enum: bakeStates } },
);

const offered = members(
  { serial: whole, state: { enum: ['refused', 'rolled-back', 'deferred', 'failed'] }, code, atMs: time },
  // Output of a checker. The store removes control characters; no page shows them.
  {
    line: { type: 'string', maxLength: fleetBounds.maxLineLength },
    output: { type: 'string', maxLength: fleetBounds.maxOutputBytes },
  },
);

const outcome = members(
  {
    n: { ...whole, minimum: 1 },
    trigger: text(32),
    outcome: text(32),
    atMs: time,
    bundles: listOf(members({ bundle: plainName, channel: plainName, serial: whole }), maxBundles),
  },
  { code },
);

export const reportSchema = members(
  {
    schema: { const: 1 },
    type: { const: 'fleet.report' },
    version: text(64),
    host: hostName,
    labels,
    installId: id,
    bootId: id,
    atMs: time,
    everyMs: { ...whole, minimum: 1000, maximum: 86_400_000 },
    agent: { enum: ['init', 'run', 'shutdown', 'stop', 'pull'] },
    health: { enum: ['ok', 'warning', 'critical'] },
    findings: listOf(code, maxFindings),
    trust: listOf(members({ role: name, version: whole, expiresAtMs: time }), maxBundles),
    freshness: text(64),
    bundles: listOf(members({ bundle: plainName, channel: plainName }, { active, offered }), maxBundles),
    groups: listOf(members({ group: plainName, workers: whole, confirmed: whole, min: whole }), maxGroups),
    outcomes: listOf(outcome, maxOutcomes),
  },
  { generation: whole, root: members({ version: whole, sha256: digest }) },
);

export const enrolSchema = members(
  {
    schema: { const: 1 },
    type: { const: 'fleet.enrol' },
    token: { type: 'string', maxLength: 128 },
    publicKey: { type: 'string', pattern: '^[A-Za-z0-9+/]{43}=$' },
    host: hostName,
    labels,
    installId: id,
  },
  { ephemeral: { const: true }, replaces: { const: true } },
);
