// Re-signs snapshot and timestamp while the server runs, and publishes files that were signed without the online keys. A
// failure is logged, reported by /healthz and retried; it never stops the server.

import { isDeepStrictEqual } from 'node:util';
import { type ErrorCode, toWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { OnlineRole } from '../../core/tuf/tuf-metadata.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import type { ServedRepository, ServedState } from './repository-view.js';
import { dueRoles, resignRetryDelay } from './resign-schedule.js';

/** A newer file that hosts would refuse. */
export interface RefusedFile {
  /** As `2.dns-team.json`. */
  readonly name: string;
  /** The name, the cause with its code, and the remedy. */
  readonly text: string;
}

/** The access to the two online keys; no other part of the server has it. */
export interface OnlineSigner {
  /**
   * Verifies the repository like a client, then signs at least these roles, snapshot before timestamp.
   * @param isDueByTime false where newer files are the only reason: without one that may be published, nothing is signed
   * @returns the newer files that hosts would refuse and that are not published
   * @throws WritError when the repository does not verify, a key is missing, or another process writes the repository
   */
  resign(roles: readonly OnlineRole[], isDueByTime: boolean): Promise<readonly RefusedFile[]>;
  /** @returns the reason why a signing would fail now, found without signing; called while no role must be signed */
  obstacle(): WritError | undefined;
}

export interface ResignStatus {
  readonly lastSuccessMs?: number;
  /** Absent after a success. */
  readonly failure?: {
    readonly code: ErrorCode;
    readonly message: string;
    /** Consecutive failures. */
    readonly count: number;
    readonly atMs: number;
  };
  /** The reason why a future signing would fail. */
  readonly obstacle?: { readonly code: ErrorCode; readonly message: string };
  /** Consecutive attempts while another process held the lock. After its publish, no signing may be needed. */
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
  /** Consecutive attempts with these files. */
  readonly tries: number;
  /** Monotonic time of the next verification, which is needed because an archive may have arrived. */
  readonly retryAtMs: number;
}

export interface Resigner {
  /** Starts the loop that checks the repository and signs. */
  start(): void;
  /** Checks the repository now and not at the next interval. Does not shorten a wait after a failure. */
  wake(): void;
  status(): ResignStatus;
  /** Lets an active signing finish. */
  stop(): Promise<void>;
}

interface ResignerOptions {
  readonly view: ServedRepository;
  readonly signer: OnlineSigner;
  readonly clock: Clock;
  readonly log: Logger;
  /** The interval of checks without a request. */
  readonly watchEveryMs: number;
  readonly onResult: (result: 'success' | 'failure') => void;
}

/** @returns a resigner that signs nothing before `start` */
export function createResigner(options: ResignerOptions): Resigner {
  const { clock, view, log, watchEveryMs } = options;
  let status: ResignStatus = {};
  let retryAtMs = 0;
  let waitingFiles = '';
  let missing = '';
  let stopped = false;
  let woken = new AbortController();
  const warnOfMissing = (files: readonly string[]): void => {
    const isKnown = files.join(' ') === missing;
    missing = files.join(' ');
    if (files.length > 0 && !isKnown) log.warn({ files }, missingFilesText(files));
  };
  const round = async (): Promise<void> => {
    warnOfMissing(view.current().missing);
    // A newer file is tried at once, and does not wait for the retry of an earlier one.
    const isChanged = textOfFiles(view.current()) !== waitingFiles;
    // Monotonic time, because a clock that is set back must not stop the retries.
    if (clock.monotonicMs() < retryAtMs && !isChanged) return;
    waitingFiles = textOfFiles(view.current());
    status = await signPendingRoles(options, status);
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
/** A writer that holds the lock longer, in seconds, counts as a failure. */
const maxBusyTries = 30;

function waitAfter({ failure, busyTries }: ResignStatus): number {
  if (busyTries !== undefined) return busyRetryMs;
  return failure === undefined ? 0 : resignRetryDelay(failure.count);
}

async function signPendingRoles(options: ResignerOptions, before: ResignStatus): Promise<ResignStatus> {
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

/** Reports an obstacle on the first day of a server, and not at the first signing after a quarter of the validity period. */
function obstacleOf({ signer, log }: ResignerOptions, before: ResignStatus): Pick<ResignStatus, 'obstacle'> {
  const found = signer.obstacle();
  if (found === undefined) return {};
  const { code, message } = found;
  if (before.obstacle?.code !== code) log.error({ code, err: found }, 'would not be able to re-sign');
  return { obstacle: { code, message } };
}

function withoutPending(state: ServedState, files: readonly RefusedFile[]): ServedState {
  return { ...state, pending: state.pending.filter((name) => !files.some((file) => file.name === name)) };
}

function textOfFiles({ pending }: ServedState): string {
  return pending.join(' ');
}

/** @returns false once other roots or targets are published, or the files must be verified again */
function isStillSetAside(
  setAside: SetAside | undefined,
  state: ServedState,
  clock: Clock,
): setAside is SetAside {
  if (setAside === undefined || setAside.verifiedUnder !== delegatorsOf(state)) return false;
  return clock.monotonicMs() < setAside.retryAtMs;
}

/** @returns undefined once none of the files is the newest of its role */
function keepListed(setAside: SetAside | undefined, { pending }: ServedState): SetAside | undefined {
  const files = setAside?.files.filter(({ name }) => pending.includes(name)) ?? [];
  return setAside === undefined || files.length === 0 ? undefined : { ...setAside, files };
}

function delegatorsOf({ roles }: ServedState): string {
  return `${roles.root?.version ?? 0} ${roles.targets?.version ?? 0}`;
}

/**
 * Logs a file once for each cause. Top-level targets are never set aside: refused ones come from a mistake or an attack,
 * and are a failure.
 */
function setAsideAfter(
  { view, clock, log }: ResignerOptions,
  ignored: readonly RefusedFile[],
  { setAside: before }: ResignStatus,
): SetAside | undefined {
  const state = view.current();
  const files = ignored.filter(({ name }) => state.pending.includes(name) && roleOfFile(name) !== 'targets');
  if (files.length === 0) return undefined;
  // The cause may change too, as from one missing archive to the next.
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

const maxMissingNames = 5;

/** @param missing names of listed files, at least one. @returns the first five and a count, the effect on hosts and the remedy */
export function missingFilesText(missing: readonly string[]): string {
  const more = missing.length > maxMissingNames ? ` and ${missing.length - maxMissingNames} more` : '';
  const names = missing.slice(0, maxMissingNames).join(', ');
  return `the snapshot lists ${names}${more}, which the directory does not have: hosts accept no new release of these teams; restore from a copy of the repository`;
}

/** @returns one line: the text of each file with its cause and its remedy, joined by a space */
export function setAsideText(files: readonly RefusedFile[]): string {
  return files.map(({ text }) => text).join(' ');
}

/** Fails where a role must still be signed, because the loop would otherwise create a new version at every interval. */
function requireSigned(view: ServedRepository, ignored: readonly RefusedFile[], nowMs: number): void {
  const due = dueRoles(withoutPending(view.read(), ignored), nowMs);
  if (due.length === 0) return;
  throw new WritError('REPOSITORY_INVALID', `${due.join(' and ')} still expire soon after signing`, {
    facts: { due, pending: view.current().pending },
  });
}

function versionsOf(view: ServedRepository): Record<string, number> {
  return versionsIn(view.current());
}

function versionsIn({ roles }: ServedState): Record<string, number> {
  return Object.fromEntries(Object.entries(roles).map(([role, state]) => [role, state.version]));
}
