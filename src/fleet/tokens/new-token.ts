// Checks a new token, for the API and the command. Owns the schema, which also describes the API, and the rules that a schema cannot
// express. Refuses options of another kind of token, because the caller meant something else.
import { WritError } from '../../core/errors.js';
import { fleetBounds } from '../../core/fleet/report.js';
import { plainPattern } from '../../core/fleet/report-schema.js';
import type { NewToken } from '../../core/fleet/token-answers.js';
import { everyMistake, validatorOf } from '../../core/schema/own-schemas.js';

const { maxNameLength, maxLabels } = fleetBounds;
/** Refuses empty texts, because `--hosts "$UNSET"` would create a token for every name. */
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

/** @throws USAGE with the first mistake */
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
