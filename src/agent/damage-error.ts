// The error that says that the policy on disk is not what it must be. Owns its words.
import { WritError } from '../core/errors.js';
import { type DamageFound, damageSummary } from '../core/scrub.js';

const maxShown = 20;

export function damageError(damage: readonly DamageFound[]): WritError {
  return new WritError('STATE_DAMAGED', `the policy on disk is damaged: ${damageSummary(damage)}`, {
    facts: { found: damage.length, damage: damage.slice(0, maxShown) },
    hint: '`writ verify --repair` mends it.',
  });
}
