// Compares the state directory with what this process opened and this boot knows, and writes its mark. Owns the two files of
// the mark; what they mean is state-mark-rules.ts. Writes nothing where the directory vanished.
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { join, sep } from 'node:path';
import { isSystemError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { DurableFs, FileOperation, OperationObserver } from '../../platform/disk/durable-fs.js';
import { readBootId } from '../../platform/process/boot-id.js';
import { listEntries, readSmallFile } from '../../platform/read-file.js';
import type { StateMark } from '../state/host.js';
import type { HostPaths } from '../state/paths.js';
import { isDiskError } from '../state/state-file.js';
import {
  type DirectoryIdentity,
  isSame,
  judgeMark,
  type MarkVerdict,
  markText,
  parseKnownMark,
  parseMark,
  type VanishedReason,
  vanishedHint,
  vanishedText,
} from './state-mark-rules.js';

const maxMarkBytes = 1000;

type MarkPaths = Pick<HostPaths, 'state' | 'policy' | 'stateMark' | 'knownMark' | 'ledger' | 'bundles'>;

interface Known {
  readonly opened?: DirectoryIdentity;
  readonly mark?: string | undefined;
}

/** @returns STATE_VANISHED where this boot has seen another directory here; for a process that has not opened it */
export function findVanished(paths: MarkPaths, boot = readBootId()): WritError | undefined {
  return errorOf(paths, judge(paths, { mark: readKnown(paths, boot) }));
}

/**
 * Opens the directory that findVanished has found to be right, and writes what is missing of the mark. A disk that does not take
 * a mark is asked again at the next renewal: a start on a full disk must go on.
 * @throws WritError STATE_VANISHED
 */
export function openStateMark(paths: MarkPaths, durable: DurableFs, boot = readBootId()): StateMark {
  const before = judge(paths, { mark: readKnown(paths, boot) });
  const vanished = errorOf(paths, before);
  if (vanished !== undefined) throw vanished;
  const opened = identityOf(paths.state);
  if (opened === undefined) throw vanishedError(paths, 'absent');
  const writeKnown = (text: string): boolean =>
    write(durable, { op: 'state-mark.copy', path: paths.knownMark }, markText(text, { boot }));
  /** @returns undefined where the disk did not take it */
  const writeNew = (): string | undefined => {
    const next = randomBytes(16).toString('hex');
    // The copy first: a crash in between leaves a directory without a mark beside its policy, which is no alarm. The other order
    // leaves two marks that differ.
    if (hasPolicy(paths) && !writeKnown(next)) return undefined;
    const target = { op: 'state-mark.write', path: paths.stateMark };
    return write(durable, target, markText(next)) ? next : undefined;
  };
  let mark = markOf(before) ?? writeNew();
  const copy = (): void => {
    if (mark !== undefined && readKnown(paths, boot) !== mark && hasPolicy(paths)) writeKnown(mark);
  };
  copy();
  return {
    findVanished: () => errorOf(paths, judge(paths, { opened, mark })),
    read: () => mark,
    requireOpened: () => {
      if (!isOpened(paths, opened))
        throw vanishedError(paths, identityOf(paths.state) === undefined ? 'absent' : 'replaced');
      // An emptied directory keeps its device and inode. The mark is read only where its file is missing.
      if (mark === undefined || fs.existsSync(paths.stateMark)) return;
      const emptied = errorOf(paths, judge(paths, { opened, mark }));
      if (emptied !== undefined) throw emptied;
    },
    renew: () => {
      const verdict = judge(paths, { opened, mark });
      const error = errorOf(paths, verdict);
      if (error !== undefined) return error;
      mark = markOf(verdict) ?? writeNew();
      copy();
      return undefined;
    },
  };
}

/**
 * Makes the directory that is there the right one: a person emptied or exchanged it on purpose. A crash between the two files
 * leaves STATE_VANISHED, and the command is given again.
 * @throws WritError STATE_VANISHED where there is no directory; DISK_*
 */
export function acceptNewState(paths: MarkPaths, durable: DurableFs, boot = readBootId()): void {
  if (identityOf(paths.state) === undefined) throw vanishedError(paths, 'absent');
  const mark = randomBytes(16).toString('hex');
  durable.replaceFile('state-mark.write', paths.stateMark, markText(mark), { mode: 0o600 });
  durable.replaceFile('state-mark.copy', paths.knownMark, markText(mark, { boot }), { mode: 0o600 });
}

/**
 * Inside the directory of a cycle in staging nothing is compared, because another state directory has no such directory, and a
 * release has thousands of files.
 * @returns an observer that throws STATE_VANISHED before an operation in a state directory that is not the opened one
 */
export function withStateGuard(
  { state, policy, staging }: Pick<HostPaths, 'state' | 'policy' | 'staging'>,
  stateMark: Pick<StateMark, 'requireOpened'>,
  observer: OperationObserver = {},
): OperationObserver {
  const cycles = join(staging, sep);
  const isInCycle = (path: string): boolean => path.startsWith(cycles) && path.includes(sep, cycles.length);
  const isBelow = ({ path }: FileOperation): boolean =>
    !isInCycle(path) && [state, policy].some((place) => path === place || path.startsWith(join(place, sep)));
  return {
    before: (operation) => {
      if (isBelow(operation)) stateMark.requireOpened();
      observer.before?.(operation);
    },
    after: (operation) => observer.after?.(operation),
  };
}

function judge(paths: MarkPaths, { opened, mark: known }: Known): MarkVerdict {
  const mark = readMark(paths.stateMark, parseMark);
  const found = identityOf(paths.state);
  return judgeMark({ found, opened, mark, known, hasPolicy: mark === undefined && hasPolicy(paths) });
}

function markOf(verdict: MarkVerdict): string | undefined {
  return verdict.kind === 'right' ? verdict.mark : undefined;
}

function errorOf(paths: MarkPaths, verdict: MarkVerdict): WritError | undefined {
  return verdict.kind === 'vanished' ? vanishedError(paths, verdict.because) : undefined;
}

function vanishedError({ state }: MarkPaths, because: VanishedReason): WritError {
  return new WritError('STATE_VANISHED', vanishedText(state, because), {
    facts: { state, because },
    ...given({ hint: vanishedHint(because) }),
  });
}

function write(durable: DurableFs, { op, path }: FileOperation, text: string): boolean {
  try {
    durable.replaceFile(op, path, text, { mode: 0o600 });
    return true;
  } catch (error) {
    if (isDiskError(error)) return false;
    throw error;
  }
}

function readKnown({ knownMark }: MarkPaths, boot: string): string | undefined {
  return readMark(knownMark, (text) => parseKnownMark(text, boot));
}

/** A mark that cannot be read counts as missing. */
function readMark(path: string, parse: (text: string) => string | undefined): string | undefined {
  const verdict = readSmallFile(path, { maxBytes: maxMarkBytes, links: 'refused' });
  return verdict.kind === 'read' ? parse(verdict.bytes.toString('utf8')) : undefined;
}

function hasPolicy({ ledger, bundles }: MarkPaths): boolean {
  if (!fs.existsSync(ledger)) return false;
  return listEntries(bundles).some(({ name }) => listEntries(join(bundles, name)).length > 0);
}

function isOpened({ state }: MarkPaths, opened: DirectoryIdentity): boolean {
  const found = identityOf(state);
  return found !== undefined && isSame(found, opened);
}

function identityOf(path: string): DirectoryIdentity | undefined {
  try {
    const stats = fs.statSync(path, { bigint: true, throwIfNoEntry: false });
    return stats?.isDirectory() === true ? { device: stats.dev, inode: stats.ino } : undefined;
  } catch (error) {
    // A mount that answers no more, as NFS with ESTALE, is no directory to write to.
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
