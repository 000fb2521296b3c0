// When and how the workers of a group are told, from the configuration file: `when` and what every `reset:` has. Only
// called with a file that schema and rules have accepted.

import { durationMs } from '../names.js';
import type { WorkerGroupConfig } from './config.js';
import { driversOf } from './config-rules.js';
import type { DriverSchema } from './config-schema.js';

export type WhenFile =
  | readonly string[]
  | { readonly reset?: readonly string[]; readonly restart?: readonly string[] };

export type ResetFile = Readonly<Record<string, unknown>> & {
  readonly timeout?: string;
  readonly min?: number;
  readonly retry?: number;
  readonly deadline?: string;
};

const defaultTimeout = '5s';

/** Any change that is no restart's is a reset's, unless it is said which are. */
export function buildWhen(when: WhenFile = []): Pick<WorkerGroupConfig, 'when' | 'restartWhen'> {
  if (!('restart' in when || 'reset' in when)) return { when: Array.isArray(when) ? when : [] };
  const { reset = [], restart } = when;
  return { when: reset, ...(restart === undefined ? {} : { restartWhen: restart }) };
}

export function buildReset(
  reset: ResetFile,
  drivers: readonly DriverSchema[],
): NonNullable<WorkerGroupConfig['reset']> {
  return {
    driver: driversOf(reset, drivers)[0]?.name ?? '',
    options: reset,
    timeoutMs: durationMs(reset.timeout ?? defaultTimeout),
    min: reset.min ?? 0,
    ...(reset.retry === undefined ? {} : { retry: reset.retry }),
    ...(reset.deadline === undefined ? {} : { deadlineMs: durationMs(reset.deadline) }),
  };
}
