// What `writ status` says of the fleet server that a host reports to: one line, and why a report does not arrive. Pure.
import type { StatusReport } from '../../core/status/status.js';
import { indented, roughly } from './show-text.js';

/** @returns none where no fleet is configured */
export function fleetLines({ fleet, atMs, problems }: StatusReport): string[] {
  if (fleet === undefined) return [];
  const { url, state, keyId, acknowledgedAtMs, problem } = fleet;
  const heard =
    acknowledgedAtMs === undefined ? 'no report yet' : `last report ${roughly(atMs - acknowledgedAtMs)} ago`;
  const why = problem === undefined ? '' : `  [${problem.code}]`;
  const key = state === 'waiting' && keyId !== undefined ? `, key ${keyId}` : '';
  // One that lasts is among the problems of the host.
  const isShown = problem === undefined || problems.some(({ code }) => code === problem.code);
  const reason = isShown ? [] : indented(problem.message, '            ', 1);
  return [`  fleet     ${url}  ${heard}${key}${why}`, ...reason];
}
