// What an error means to whoever reads a result: the problem, and the outcome of what it happened to. Pure.

import { toWritError } from '../errors.js';
import type { Problem } from './cycle-report.js';
import type { Outcome } from './sync-machine.js';

/** An error as results and history carry it. */
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

/** The outcome that an error means for what it happened to. */
export function outcomeOf(error: unknown): Outcome {
  return outcomeOfKind[toWritError(error).kind];
}
