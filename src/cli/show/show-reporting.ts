// The line of `writ status` about the fleet server of a host, and the reason when its reports do not arrive. Pure.
import type { StatusReport } from '../../core/status/status.js';
import { indented, roughly } from './show-text.js';

/** @returns no line without a configured fleet server */
export function fleetLines({ fleet, atMs, problems }: StatusReport): string[] {
  if (fleet === undefined) return [];
  const { url, state, keyId, acknowledgedAtMs, problem } = fleet;
  const reportText =
    acknowledgedAtMs === undefined ? 'no report yet' : `last report ${roughly(atMs - acknowledgedAtMs)} ago`;
  const why = problem === undefined ? '' : `  [${problem.code}]`;
  const key = state === 'waiting' && keyId !== undefined ? `, key ${keyId}` : '';
  // A lasting problem is already among the problems of the host.
  const isShown = problem === undefined || problems.some(({ code }) => code === problem.code);
  const reason = isShown ? [] : indented(problem.message, '            ', 1);
  return [`  fleet     ${url}  ${reportText}${key}${why}`, ...reason];
}
