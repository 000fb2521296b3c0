// Keeps snapshot and timestamp fresh while the server runs, and takes a publish that came without the online
// keys live. A failure is logged, kept for /healthz and tried again; it never ends the server.

import { type ErrorCode, toWritError, WritError } from '../../core/errors.js';
import type { OnlineRole } from '../../core/tuf/tuf-metadata.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import type { RepositoryView } from './repository-view.js';
import { dueRoles, resignRetryDelay } from './resign-schedule.js';

/** Holds the two online keys; nothing else of the server sees them. */
export interface OnlineSigner {
  /**
   * Verifies the repository as a client would, then signs at least these roles, snapshot before timestamp.
   * @throws WritError when it does not verify, a key is missing, or another process writes the repository
   */
  resign(roles: readonly OnlineRole[]): Promise<void>;
  /** What would make it fail now, looked for without signing; asked while nothing has to be signed. */
  obstacle(): WritError | undefined;
}

export interface ResignStatus {
  readonly lastSuccessMs?: number;
  /** Absent after a success. */
  readonly failure?: {
    readonly code: ErrorCode;
    readonly message: string;
    /** Failures in a row. */
    readonly count: number;
    readonly atMs: number;
  };
  /** Nothing has to be signed yet, and this would be in the way. */
  readonly obstacle?: { readonly code: ErrorCode; readonly message: string };
  /** Tries in a row that found another writer at work: a publish, whose outcome may leave nothing to do. */
  readonly busyTries?: number;
}

export interface Resigner {
  /** Begins to look and to sign; before it, nothing is signed. */
  start(): void;
  /** Looks at the repository now instead of at the next tick; a wait after a failure is not cut short. */
  wake(): void;
  status(): ResignStatus;
  /** Lets a signing that is under way end. */
  stop(): Promise<void>;
}

interface ResignerOptions {
  readonly view: RepositoryView;
  readonly signer: OnlineSigner;
  readonly clock: Clock;
  readonly log: Logger;
  /** How often the directory is looked at without a request. */
  readonly watchEveryMs: number;
  readonly onResult: (result: 'success' | 'failure') => void;
}

export function createResigner(options: ResignerOptions): Resigner {
  const { clock, watchEveryMs } = options;
  let status: ResignStatus = {};
  let retryAtMs = 0;
  let stopped = false;
  let woken = new AbortController();
  const round = async (): Promise<void> => {
    // Monotonic: a clock that is set back must not stop the retries.
    if (clock.monotonicMs() < retryAtMs) return;
    status = await signWhatIsDue(options, status);
    const waitMs = waitAfter(status);
    if (waitMs > 0) retryAtMs = clock.monotonicMs() + waitMs;
  };
  const loop = async (): Promise<void> => {
    while (!stopped) {
      woken = new AbortController();
      await round();
      const waitMs = Math.max(retryAtMs - clock.monotonicMs(), 0);
      if (!stopped) await clock.sleep(waitMs === 0 ? watchEveryMs : waitMs, woken.signal);
    }
  };
  let ended = Promise.resolve();
  return {
    start: () => {
      ended = loop();
    },
    wake: () => woken.abort(),
    status: () => status,
    stop: async () => {
      stopped = true;
      woken.abort();
      await ended;
    },
  };
}

const busyRetryMs = 1000;
/** A writer that takes longer than this many seconds hangs, and that is a failure. */
const maxBusyTries = 30;

function waitAfter({ failure, busyTries }: ResignStatus): number {
  if (busyTries !== undefined) return busyRetryMs;
  return failure === undefined ? 0 : resignRetryDelay(failure.count);
}

async function signWhatIsDue(options: ResignerOptions, before: ResignStatus): Promise<ResignStatus> {
  const { view, signer, clock, log, onResult } = options;
  try {
    const due = dueRoles(view.read(), clock.nowMs());
    const { lastSuccessMs } = before;
    const known = lastSuccessMs === undefined ? {} : { lastSuccessMs };
    if (due.length === 0) return { ...known, ...obstacleOf(options, before) };
    await signer.resign(due);
    requireSigned(view, clock.nowMs());
    onResult('success');
    log.info({ roles: due, versions: versionsOf(view) }, 're-signed');
    return { lastSuccessMs: clock.nowMs() };
  } catch (error) {
    const { code, message } = toWritError(error);
    const { busyTries = 0, obstacle: _, ...known } = before;
    if (code === 'REPOSITORY_LOCKED' && busyTries < maxBusyTries) {
      log.debug({ busyTries }, 'another process writes the repository');
      return { ...known, busyTries: busyTries + 1 };
    }
    onResult('failure');
    const count = (before.failure?.count ?? 0) + 1;
    log.error({ code, count, retryInMs: resignRetryDelay(count), err: error }, 'cannot re-sign');
    return { ...known, failure: { code, message, count, atMs: clock.nowMs() } };
  }
}

/** A server that cannot write is heard of on its first day, and not when a quarter of a life has passed. */
function obstacleOf({ signer, log }: ResignerOptions, before: ResignStatus): Pick<ResignStatus, 'obstacle'> {
  const found = signer.obstacle();
  if (found === undefined) return {};
  const { code, message } = found;
  if (before.obstacle?.code !== code) log.error({ code, err: found }, 'would not be able to re-sign');
  return { obstacle: { code, message } };
}

/** Without this, a signer that leaves something due would be asked at every tick, one version each. */
function requireSigned(view: RepositoryView, nowMs: number): void {
  const due = dueRoles(view.read(), nowMs);
  if (due.length === 0) return;
  throw new WritError('REPOSITORY_INVALID', `${due.join(' and ')} still expire soon after signing`, {
    facts: { due, pending: view.current().pending },
  });
}

function versionsOf(view: RepositoryView): Record<string, number> {
  const { roles } = view.current();
  return Object.fromEntries(Object.entries(roles).map(([role, state]) => [role, state.version]));
}
