// Converts an error into the problem of a report and the outcome of a bundle or cycle. Pure.

import { toWritError } from '../errors.js';
import type { Problem } from './cycle-report.js';
import type { Outcome } from './sync-machine.js';

/** @returns the error as reports and the history contain it */
export function problemOf(error: unknown): Problem {
  const { code, message, hint, facts } = toWritError(error);
  return { code, message, hint, facts };
}

export const outcomeOfKind = {
  rejected: 'rejected',
  'rolled-back': 'rolled-back',
  degraded: 'degraded',
  deferred: 'deferred',
  blocked: 'blocked',
  busy: 'failed',
  failed: 'failed',
  usage: 'failed',
  config: 'failed',
} as const satisfies Record<string, Outcome>;

/** @returns the outcome of the bundle or cycle that the error ended */
export function outcomeOf(error: unknown): Outcome {
  return outcomeOfKind[toWritError(error).kind];
}
