// Finds the daemon of a pid file: alive, of the user who owns the file, and not another program with a reused pid. A zombie does not
// count as alive.
import { isSystemError } from '../../core/errors.js';
import { readBootTimes } from '../../platform/process/boot-time.js';
import { findInnerPids, runsProgram, seesFile } from '../../platform/process/process-details.js';
import {
  findProcess,
  type PidFile,
  type ProcessInfo,
  readPidFile,
  whyNoPid,
} from '../../platform/process/processes.js';
import type { Clock } from '../../platform/time/clock.js';
import type { Daemon, Liveness } from '../contract/driver.js';
import { isTrustedOwner, mayHaveWritten } from './pid-file-rules.js';

export interface PidFileOptions {
  /** Name or path of the program that the process must run. */
  readonly program?: string | undefined;
  /** Cache of checks; undefined: every check runs now. */
  readonly examined?: ExaminedFiles;
}

/** @returns the running process of the pid file, or the reason why there is none */
export function findDaemon(path: string, options: PidFileOptions = {}): Daemon {
  try {
    const file = readPidFile(path);
    if (file === undefined) return { kind: 'unknown', reason: whyNoPid(path) };
    const process = findProcess(file.pid);
    if (process !== undefined && !isTrustedOwner(file.uid, process.effectiveUid))
      return { kind: 'unknown', reason: `${path} belongs to another user than process ${file.pid}` };
    const doubt = doubtOf({ path, file, process }, options);
    if (doubt !== undefined) return { kind: 'unknown', reason: `${path}: ${doubt}`, hint: programHint };
    if (process === undefined) return { kind: 'dead', reason: `${path}: process ${file.pid} is dead` };
    return { kind: 'found', process };
  } catch (error) {
    if (!isSystemError(error)) throw error;
    if (error.code === 'ENOENT')
      return { kind: 'dead', reason: `there is no pid file ${path}`, hint: missingHint };
    return { kind: 'unknown', reason: `${path} cannot be read: ${error.code}` };
  }
}

/** Hint for a missing file, because a daemon may run without writing the configured file. */
const missingHint = 'if its daemon runs, correct the path, or let the daemon write the file';
const programHint = 'give `process.program`, or `process.unit` in place of the pid file';

interface Meaning {
  readonly path: string;
  readonly file: PidFile;
  readonly process: ProcessInfo | undefined;
}

/** @returns why the process with this pid may be another program; undefined if it is the daemon */
function doubtOf(meaning: Meaning, { program, examined }: PidFileOptions): string | undefined {
  const { file, process } = meaning;
  if (program !== undefined && process !== undefined)
    return runsProgram(file.pid, program) ? undefined : `process ${file.pid} does not run ${program}`;
  return examined === undefined ? examine(meaning) : examined.doubtOf(meaning);
}

function examine({ path, file, process }: Meaning): string | undefined {
  const inner = findInnerPids(file.pid).find((pid) => seesFile(pid, path, file));
  if (inner !== undefined)
    return `process ${inner} has the number ${file.pid} in its own pid namespace, and sees this file`;
  const times = process && readBootTimes();
  if (process === undefined || times === undefined) return undefined;
  const { startTicks } = process;
  return mayHaveWritten({ startTicks, writtenAtMs: file.writtenAtMs, ...times })
    ? undefined
    : `process ${file.pid} began after the file was written`;
}

export interface ExaminedFiles {
  /** @returns the cached doubt for this file and process; it is examined again after a minute */
  doubtOf(meaning: Meaning): string | undefined;
}

const maxExamined = 4096;
const examineAgainMs = 60_000;

/** Caches checks while file and process are unchanged, because a walk over all processes every few seconds costs too much. */
export function rememberExamined(clock: Pick<Clock, 'monotonicMs'>): ExaminedFiles {
  const known = new Map<
    string,
    { readonly key: string; readonly doubt?: string; readonly untilMs: number }
  >();
  return {
    doubtOf: (meaning) => {
      const { path, file, process } = meaning;
      const key = JSON.stringify([file, process?.startTicks]);
      const nowMs = clock.monotonicMs();
      const before = known.get(path);
      if (before?.key === key && nowMs < before.untilMs) return before.doubt;
      const doubt = examine(meaning);
      const isCertain = doubt === undefined && process !== undefined;
      if (known.size >= maxExamined) known.clear();
      known.set(path, {
        key,
        ...(doubt === undefined ? {} : { doubt }),
        untilMs: isCertain ? Number.POSITIVE_INFINITY : nowMs + examineAgainMs,
      });
      return doubt;
    },
  };
}

/** @returns the liveness of the process of a pid file */
export function livenessIn(path: string): Liveness {
  return livenessOfDaemon(findDaemon(path));
}

/** @returns `alive` for a daemon that was found; otherwise the reason why there is none */
export function livenessOfDaemon({ kind }: Daemon): Liveness {
  return kind === 'found' ? 'alive' : kind;
}
