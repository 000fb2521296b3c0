// What a check of a repository finds. Types alone; check-repository.ts looks.
import type { ErrorCode } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import type { Clock } from '../../platform/time/clock.js';

export interface Findings {
  /** Runs a check; what it refuses becomes a problem of `where`. @returns undefined then */
  attempt<T>(where: string, act: () => T): T | undefined;
  attemptLater<T>(where: string, act: () => Promise<T>): Promise<T | undefined>;
  note(text: string): void;
}

export interface CheckProblem {
  readonly code: ErrorCode;
  /** The file, below the repository. */
  readonly where: string;
  readonly message: string;
}

export interface CheckOptions {
  readonly repository: string;
  /** Where the publisher's copy of the root lies; without it the repository's own first root is believed. */
  readonly keysDirectory?: string;
  readonly limits: ArchiveLimits;
  readonly clock: Clock;
  readonly report: { begin(step: string, text?: string): void };
  readonly signal?: AbortSignal;
}
