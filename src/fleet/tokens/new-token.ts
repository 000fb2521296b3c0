// What a new token may be: one rule, whoever asks for it and by whatever door. Owns its schema, which also describes it in the
// API, and what a schema cannot say. A token that says something that does not go with its kind was meant otherwise.
import { WritError } from '../../core/errors.js';
import { fleetBounds } from '../../core/fleet/report.js';
import { plainPattern } from '../../core/fleet/report-schema.js';
import type { NewToken } from '../../core/fleet/token-answers.js';
import { everyMistake, validatorOf } from '../../core/schema/own-schemas.js';

const { maxNameLength, maxLabels } = fleetBounds;
/** Nothing is empty: `--hosts "$UNSET"` would be a token for every name. */
const text = { type: 'string', minLength: 1, maxLength: maxNameLength, pattern: plainPattern };

export const newTokenSchema = {
  type: 'object',
  properties: {
    kind: { enum: ['hosts', 'people', 'opa'] },
    role: { enum: ['view', 'detail', 'operate'] },
    note: { ...text, maxLength: 200 },
    uses: { type: 'integer', minimum: 1, maximum: 1_000_000 },
    lifetimeMs: { type: 'integer', minimum: 1000, maximum: 10 * 366 * 86_400_000 },
    hosts: text,
    labels: {
      type: 'object',
      maxProperties: maxLabels,
      propertyNames: text,
      additionalProperties: { type: 'string', maxLength: maxNameLength, pattern: plainPattern },
    },
  },
  required: ['kind'],
  additionalProperties: false,
} as const;

const ofHosts = ['uses', 'hosts', 'labels'] as const;

/** @throws USAGE: what is wrong with it first */
export function checkNewToken(wanted: NewToken): void {
  if (!validatorOf(newTokenSchema)(wanted)) {
    const [mistake] = everyMistake(newTokenSchema, wanted);
    throw refused(`${mistake?.instancePath.slice(1)} ${mistake?.message}`);
  }
  if (wanted.kind !== 'people' && wanted.role !== undefined) throw refused('a role is for people');
  const strange = ofHosts.find((name) => wanted[name] !== undefined);
  if (wanted.kind !== 'hosts' && strange !== undefined) throw refused(`${strange} is for hosts`);
}

function refused(why: string): WritError {
  return new WritError('USAGE', `the token cannot be made: ${why.slice(0, 300)}`);
}
