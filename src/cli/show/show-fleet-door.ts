// What `writ status` says of the fleet server that a host reports to: one line. Pure.
import type { StatusReport } from '../../core/status/status.js';
import { roughly } from './show-text.js';

/** @returns none where no fleet is configured */
export function fleetLines({ fleet, atMs }: StatusReport): string[] {
  if (fleet === undefined) return [];
  const { url, state, keyId, acknowledgedAtMs, problem } = fleet;
  const heard =
    acknowledgedAtMs === undefined ? 'no report yet' : `last report ${roughly(atMs - acknowledgedAtMs)} ago`;
  const why = problem === undefined ? '' : `  [${problem.code}]`;
  const key = state === 'waiting' && keyId !== undefined ? `, key ${keyId}` : '';
  return [`  fleet     ${url}  ${heard}${key}${why}`];
}
