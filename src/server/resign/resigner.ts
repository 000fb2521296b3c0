// Keeps snapshot and timestamp fresh while the server runs, and takes a publish that came without the online
// keys live. A failure is logged, kept for /healthz and tried again; it never ends the server.

import { isDeepStrictEqual } from 'node:util';
import { type ErrorCode, toWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { OnlineRole } from '../../core/tuf/tuf-metadata.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import type { RepositoryState, RepositoryView } from './repository-view.js';
import { dueRoles, resignRetryDelay } from './resign-schedule.js';

/** A newer file that hosts would refuse. */
export interface RefusedFile {
  /** As `2.dns-team.json`. */
  readonly name: string;
  /** The name, the cause with its code, and what helps. */
  readonly text: string;
}

/** Holds the two online keys; nothing else of the server sees them. */
export interface OnlineSigner {
  /**
   * Verifies the repository as a client would, then signs at least these roles, snapshot before timestamp.
   * @param isDueByTime false where only newer files are the reason: without one that may be published, nothing is signed
   * @returns the newer files that hosts would refuse and that are not published
   * @throws WritError when the repository does not verify, a key is missing, or another process writes the repository
   */
  resign(roles: readonly OnlineRole[], isDueByTime: boolean): Promise<readonly RefusedFile[]>;
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
  /** Newer files of teams that cannot be published yet. */
  readonly setAside?: SetAside;
}

/**
 * Files of teams that do not verify under the published delegations, or that hosts would refuse. Each waits for a newer
 * version of its role, and does not delay other roles.
 */
export interface SetAside {
  readonly files: readonly RefusedFile[];
  /** Versions of the root and the targets that the files were verified under. */
  readonly verifiedUnder: string;
  /** Tries in a row with these files. */
  readonly tries: number;
  /** Monotonic: then they are verified again, because an archive may have arrived since. */
  readonly retryAtMs: number;
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
  const { clock, view, watchEveryMs } = options;
  let status: ResignStatus = {};
  let retryAtMs = 0;
  let waitingFiles = '';
  let stopped = false;
  let woken = new AbortController();
  const round = async (): Promise<void> => {
    // Another publish must not wait for a file that failed before it.
    const isChanged = textOfFiles(view.current()) !== waitingFiles;
    // Monotonic: a clock that is set back must not stop the retries.
    if (clock.monotonicMs() < retryAtMs && !isChanged) return;
    waitingFiles = textOfFiles(view.current());
    status = await signWhatIsDue(options, status);
    const waitMs = waitAfter(status);
    retryAtMs = waitMs > 0 ? clock.monotonicMs() + waitMs : 0;
  };
  const loop = async (): Promise<void> => {
    while (!stopped) {
      woken = new AbortController();
      await round();
      const waitMs = Math.max(retryAtMs - clock.monotonicMs(), 0);
      if (!stopped)
        await clock.sleep(waitMs === 0 ? watchEveryMs : Math.min(waitMs, watchEveryMs), woken.signal);
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
    const state = view.read();
    const waiting = isStillSetAside(before.setAside, state, clock) ? before.setAside.files : [];
    const due = dueRoles(withoutPending(state, waiting), clock.nowMs());
    const { lastSuccessMs, setAside } = before;
    const known = given({ lastSuccessMs, setAside: keepListed(setAside, state) });
    if (due.length === 0) return { ...known, ...obstacleOf(options, before) };
    const isDueByTime = dueRoles({ ...state, pending: [] }, clock.nowMs()).length > 0;
    const ignored = await signer.resign(due, isDueByTime);
    requireSigned(view, ignored, clock.nowMs());
    const next = given({ setAside: setAsideAfter(options, ignored, before) });
    const published = versionsOf(view);
    if (isDeepStrictEqual(published, versionsIn(state))) return { ...given({ lastSuccessMs }), ...next };
    onResult('success');
    log.info({ roles: due, versions: published }, 're-signed');
    return { lastSuccessMs: clock.nowMs(), ...next };
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

function withoutPending(state: RepositoryState, files: readonly RefusedFile[]): RepositoryState {
  return { ...state, pending: state.pending.filter((name) => !files.some((file) => file.name === name)) };
}

function textOfFiles({ pending }: RepositoryState): string {
  return pending.join(' ');
}

/** @returns false once other roots or targets are published, or the files are to be verified again */
function isStillSetAside(
  setAside: SetAside | undefined,
  state: RepositoryState,
  clock: Clock,
): setAside is SetAside {
  if (setAside === undefined || setAside.verifiedUnder !== delegatorsOf(state)) return false;
  return clock.monotonicMs() < setAside.retryAtMs;
}

/** @returns undefined once none of the files is the newest of its role */
function keepListed(setAside: SetAside | undefined, { pending }: RepositoryState): SetAside | undefined {
  const files = setAside?.files.filter(({ name }) => pending.includes(name)) ?? [];
  return setAside === undefined || files.length === 0 ? undefined : { ...setAside, files };
}

function delegatorsOf({ roles }: RepositoryState): string {
  return `${roles.root?.version ?? 0} ${roles.targets?.version ?? 0}`;
}

/** Logs a file once for each cause. Top-level targets are not set aside, because they come from a mistake or an attack: that is a failure. */
function setAsideAfter(
  { view, clock, log }: ResignerOptions,
  ignored: readonly RefusedFile[],
  { setAside: before }: ResignStatus,
): SetAside | undefined {
  const state = view.current();
  const files = ignored.filter(({ name }) => state.pending.includes(name) && roleOfFile(name) !== 'targets');
  if (files.length === 0) return undefined;
  // The cause changes too, as from one missing archive to the next.
  const isKnown = files.every(({ text }) => before?.files.some((file) => file.text === text));
  if (!isKnown) log.warn({ files: files.map(({ name }) => name) }, setAsideText(files));
  const tries = isKnown ? (before?.tries ?? 0) + 1 : 1;
  const retryAtMs = clock.monotonicMs() + resignRetryDelay(tries);
  return { files, verifiedUnder: delegatorsOf(state), tries, retryAtMs };
}

/** @param name as `2.dns-team.json` */
function roleOfFile(name: string): string {
  return decodeURIComponent(name.replace(/^\d+\.(.*)\.json$/, '$1'));
}

/** @returns each file with its cause and with what helps */
export function setAsideText(files: readonly RefusedFile[]): string {
  return files.map(({ text }) => text).join(' ');
}

/** Otherwise the loop would ask a signer that leaves something due at every tick, one version each. */
function requireSigned(view: RepositoryView, ignored: readonly RefusedFile[], nowMs: number): void {
  const due = dueRoles(withoutPending(view.read(), ignored), nowMs);
  if (due.length === 0) return;
  throw new WritError('REPOSITORY_INVALID', `${due.join(' and ')} still expire soon after signing`, {
    facts: { due, pending: view.current().pending },
  });
}

function versionsOf(view: RepositoryView): Record<string, number> {
  return versionsIn(view.current());
}

function versionsIn({ roles }: RepositoryState): Record<string, number> {
  return Object.fromEntries(Object.entries(roles).map(([role, state]) => [role, state.version]));
}
