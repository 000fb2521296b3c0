// Writes text to stdout and stderr: answers and progress through the streams of the process, the log directly to its descriptor. Text
// that cannot be written is dropped and counted, so that it never ends or delays a change of policy. Never throws; never changes an
// exit code.
import { writeSync } from 'node:fs';
import { given } from '../../core/given.js';

/** Text that could not be written. */
export interface TextLosses {
  /** Includes lines that were written in part. */
  readonly lines: number;
  /** Error code of the system for the last loss, as ENOSPC; undefined without losses. */
  readonly code?: string;
}

export interface StreamText {
  write(text: string): void;
  /** Resolves when every text is written or lost. */
  settled(): Promise<TextLosses>;
}

/**
 * @param stream stdout or stderr; its errors do not end the process any more
 * @param onLoss called at each text that could not be written; no call by default
 * @returns `write` passes the text on at once and never throws for an error of the stream; it ignores ''. `settled` resolves
 *   with the count of lost lines since the start: 0 lines and no `code` without a loss.
 */
export function openStreamText(
  stream: NodeJS.WritableStream,
  onLoss: () => void = () => undefined,
): StreamText {
  const losses = countLosses();
  let last: Promise<void> = Promise.resolve();
  // Without a listener, the first error of a stream would end the process.
  stream.on('error', () => undefined);
  return {
    write: (text) => {
      // Skip empty text, because writing it fails on a full device too.
      if (text === '') return;
      last = new Promise((resolve) => {
        stream.write(text, (error) => {
          if (error) {
            losses.add(text, error);
            onLoss();
          }
          resolve();
        });
      });
    },
    settled: async () => {
      await last;
      return losses.read();
    },
  };
}

export interface LogOutput {
  /** @param lines one or more, each with a line end */
  write(lines: string): void;
  losses(): TextLosses;
}

export interface LogOutputOptions {
  /** Called after the first successful write after losses, with the losses since the last call. */
  readonly onRecovered?: (losses: TextLosses) => void;
  /** For tests. */
  readonly calls?: LogCalls;
}

export interface LogCalls {
  /** @returns how many bytes were written @throws the error of the system */
  write(bytes: Uint8Array): number;
  /** Runs its argument after a moment, unless the process ends before. */
  later(retry: () => void): void;
  /** Blocks for a moment without running the event loop. */
  wait(): void;
  onExit(flush: () => void): void;
}

/** Bound on lines that wait for a slow reader. Further lines are lost. */
const maxWaitingBytes = 1_048_576;
/** Gives the reader one second for waiting lines at the end of the process. */
const maxTriesAtExit = 20;
const momentMs = 50;

const systemCalls: LogCalls = {
  write: (bytes) => writeSync(2, bytes),
  later: (retry) => void setTimeout(retry, momentMs).unref(),
  wait: () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, momentMs),
  onExit: (flush) => void process.on('exit', flush),
};

/**
 * Opens the log on stderr. Lines are written before `write` returns, except to a full pipe: its reader gets them later, in the same
 * order.
 */
export function openLogOutput({ onRecovered, calls = systemCalls }: LogOutputOptions = {}): LogOutput {
  const losses = countLosses();
  const line = lineWriter(calls, losses);
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  let isExiting = false;
  const flush = (): void => {
    const lines = waiting;
    waiting = [];
    waitingBytes = 0;
    for (const bytes of lines) put(bytes);
  };
  const put = (bytes: Uint8Array): void => {
    const rest = waiting.length > 0 ? bytes : line.write(bytes);
    if (rest.length === 0) return;
    if (waiting.length > 0 && waitingBytes + rest.length > maxWaitingBytes) {
      losses.add(rest, { code: 'EAGAIN' });
      return;
    }
    waiting.push(rest);
    waitingBytes += rest.length;
    if (waiting.length === 1 && !isExiting) calls.later(flush);
  };
  const flushAtExit = (): void => {
    isExiting = true;
    for (let tries = 0; waiting.length > 0 && tries < maxTriesAtExit; tries += 1) {
      calls.wait();
      flush();
    }
  };
  calls.onExit(flushAtExit);
  return {
    write: (lines) => {
      put(Buffer.from(lines));
      if (isExiting) flushAtExit();
      const missed = waiting.length === 0 && line.isWriting() ? losses.takeNew() : undefined;
      if (missed !== undefined) onRecovered?.(missed);
    },
    losses: losses.read,
  };
}

function countLosses() {
  let [lines, newLines] = [0, 0];
  let code: string | undefined;
  const read = (): TextLosses => ({ lines, ...given({ code }) });
  return {
    add: (text: string | Uint8Array, error: NodeJS.ErrnoException | { readonly code: string }): void => {
      const lost = Buffer.from(text).filter((byte) => byte === lineEnd).length;
      lines += lost;
      newLines += lost;
      code = error.code ?? 'UNKNOWN';
    },
    read,
    /** @returns the losses since the last call; undefined without losses */
    takeNew: (): TextLosses | undefined => {
      const taken = newLines;
      newLines = 0;
      return taken === 0 ? undefined : { ...read(), lines: taken };
    },
  };
}

const lineEnd = 0x0a;

/** Writes bytes. After an error within a line, the next write begins with a line end. */
function lineWriter({ write }: LogCalls, losses: ReturnType<typeof countLosses>) {
  let isCut = false;
  let isWriting = true;
  return {
    /** @returns the bytes that wait for the reader; empty if all are written or lost */
    write: (bytes: Uint8Array): Uint8Array => {
      let left = bytes;
      try {
        if (isCut) isCut = write(Buffer.of(lineEnd)) === 0;
        while (left.length > 0) left = left.subarray(write(left));
        isWriting = true;
      } catch (error) {
        const { code = 'UNKNOWN' } = error as NodeJS.ErrnoException;
        if (code === 'EAGAIN') return left;
        isWriting = false;
        isCut ||= left.length < bytes.length && bytes[bytes.length - left.length - 1] !== lineEnd;
        losses.add(left, { code });
        left = left.subarray(left.length);
      }
      return left;
    },
    isWriting: () => isWriting,
  };
}
