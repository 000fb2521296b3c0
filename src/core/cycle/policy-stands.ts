// Adds the effect on the active policy to the error of a failed command, because an operator first needs to know which policy the
// host uses. The caller must know that the command changed nothing.
import { toWritError, WritError } from '../errors.js';

/**
 * @param error of the command, before it changed anything
 * @param active the active generation, `none` before a first activation; undefined if it is not known
 * @returns the same error with the active policy in `facts.policy` and with `facts.changed`
 */
export function policyStands(error: unknown, active?: number | 'none'): WritError {
  const { code, message, hint, facts } = toWritError(error);
  const generation = active === undefined ? 'The active policy' : `Generation ${active}`;
  const stands = active === 'none' ? 'No policy is active yet' : `${generation} stays active`;
  const policy = `${stands}; nothing was changed`;
  return new WritError(code, message, { facts: { ...facts, changed: false, policy }, hint, cause: error });
}
