// A log for assertions: the lines of pino as objects.
import { Writable } from 'node:stream';
import { pino } from 'pino';
import type { Logger } from '../../../src/platform/telemetry/log.js';

export interface LogLines {
  readonly log: Logger;
  readonly lines: readonly Record<string, unknown>[];
  /** @returns the lines with this message */
  named(message: string): Record<string, unknown>[];
}

/** @returns a log, with the lines written so far */
export function logLines(): LogLines {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(JSON.parse(chunk.toString('utf8')) as Record<string, unknown>);
      done();
    },
  });
  return { log: pino(stream), lines, named: (message) => lines.filter(({ msg }) => msg === message) };
}
