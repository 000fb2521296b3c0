// The daemon that a pid file means: alive, of the user to whom the file belongs, and not a stranger with the same number.
// Never takes a zombie for alive, nor a process that has only inherited the number.
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
  /** Doubts that were examined before; left out: everything is examined now. */
  readonly examined?: ExaminedFiles;
}

/** @returns the live process that the pid file means, or why there is none */
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

/** A daemon may run without writing the file that the configuration names. */
const missingHint = 'if its daemon runs, correct the path, or let the daemon write the file';
const programHint = 'give `process.program`, or `process.unit` in place of the pid file';

interface Meaning {
  readonly path: string;
  readonly file: PidFile;
  readonly process: ProcessInfo | undefined;
}

/** @returns why the process that has this number may be a stranger */
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
  /** @returns as it was found for this very file and process; a doubt is examined again after a minute */
  doubtOf(meaning: Meaning): string | undefined;
}

const maxExamined = 4096;
const examineAgainMs = 60_000;

/** A walk over all processes is too much for every few seconds: neither the file nor the process has changed. */
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

/** Whether the process lives that a pid file means. */
export function livenessIn(path: string): Liveness {
  return livenessOfDaemon(findDaemon(path));
}

export function livenessOfDaemon({ kind }: Daemon): Liveness {
  return kind === 'found' ? 'alive' : kind;
}
