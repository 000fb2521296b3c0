// What a failed command says of the policy that it was to change: whoever reads an error at night wants to know
// first what his hosts run on. Owns the words; who calls it has made sure that they are true.
import { toWritError, WritError } from '../errors.js';

/**
 * @param error what ended the command before it had changed anything
 * @param active the active generation, `none` before a first activation; left out where its place is not known
 * @returns the same error, with what stays active in `facts.policy` and `facts.changed`
 */
export function policyStands(error: unknown, active?: number | 'none'): WritError {
  const { code, message, hint, facts } = toWritError(error);
  const generation = active === undefined ? 'The active policy' : `Generation ${active}`;
  const stands = active === 'none' ? 'No policy is active yet' : `${generation} stays active`;
  const policy = `${stands}; nothing was changed`;
  return new WritError(code, message, { facts: { ...facts, changed: false, policy }, hint, cause: error });
}
