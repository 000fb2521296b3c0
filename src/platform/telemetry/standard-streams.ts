// The two ways to write text to stdout and stderr: answers and narration through the streams of the process, the log straight
// to its descriptor. Text that cannot be written is dropped and counted, so that it never ends or delays a change of policy.
// Never throws; never decides an exit code.
import { writeSync } from 'node:fs';
import { given } from '../../core/given.js';

/** Text that could not be written. */
export interface TextLosses {
  /** A line of which only the end was lost counts too. */
  readonly lines: number;
  /** Error code of the system for the last of them, as ENOSPC; left out while nothing was lost. */
  readonly code?: string;
}

export interface StreamText {
  write(text: string): void;
  /** Resolves when each text so far was written or lost. */
  settled(): Promise<TextLosses>;
}

/**
 * @param stream stdout or stderr; from now on an error of it ends nothing
 * @param onLoss is called each time that text was lost
 */
export function openStreamText(
  stream: NodeJS.WritableStream,
  onLoss: () => void = () => undefined,
): StreamText {
  const losses = countLosses();
  let last: Promise<void> = Promise.resolve();
  // A stream without a listener for its errors ends the process at the first of them.
  stream.on('error', () => undefined);
  return {
    write: (text) => {
      // Writing nothing fails too on a device that is full.
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
  /** @param lines one or more, each with its end */
  write(lines: string): void;
  losses(): TextLosses;
}

export interface LogOutputOptions {
  /** Called after the first lines that were written again, with the losses since the last call. */
  readonly onRecovered?: (losses: TextLosses) => void;
  /** For tests. */
  readonly calls?: LogCalls;
}

export interface LogCalls {
  /** @returns how many bytes were written @throws the error of the system */
  write(bytes: Uint8Array): number;
  /** Runs its argument in a moment, if the process has not ended by then. */
  later(retry: () => void): void;
  /** Waits a moment without giving the event loop a turn. */
  wait(): void;
  onExit(flush: () => void): void;
}

/** Lines that wait for a slow reader: beyond this they are lost. */
const maxWaitingBytes = 1_048_576;
/** At the end of the process a reader has a second for what waits. */
const maxTriesAtExit = 20;
const momentMs = 50;

const systemCalls: LogCalls = {
  write: (bytes) => writeSync(2, bytes),
  later: (retry) => void setTimeout(retry, momentMs).unref(),
  wait: () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, momentMs),
  onExit: (flush) => void process.on('exit', flush),
};

/**
 * The log on stderr, written before `write` returns. A pipe that is full for the moment is the exception: its reader gets
 * the lines later, in their order.
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
    /** @returns the losses since the last call; undefined where there are none */
    takeNew: (): TextLosses | undefined => {
      const taken = newLines;
      newLines = 0;
      return taken === 0 ? undefined : { ...read(), lines: taken };
    },
  };
}

const lineEnd = 0x0a;

/** Writes bytes one after the other; a line that was cut by an error is ended before the next one. */
function lineWriter({ write }: LogCalls, losses: ReturnType<typeof countLosses>) {
  let isCut = false;
  let isWriting = true;
  return {
    /** @returns what waits for the reader; nothing where all was written or lost */
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
