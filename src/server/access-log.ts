// Logs one structured line for each request, complete or not, and reports the same facts to the metrics. Headers are never
// logged, because they may contain a proxy's credentials.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '../platform/telemetry/log.js';
import type { Clock } from '../platform/time/clock.js';
import type { RequestPath } from './files/request-path.js';

export interface RequestRecord {
  readonly route: RequestPath['kind'];
  readonly method: string;
  /** The request target as received, cut at maxLoggedCharacters. */
  readonly path: string;
  readonly status: number;
  /** The bytes of headers and body that were written to the socket. */
  readonly bytes: number;
  readonly durationMs: number;
  readonly remote: string;
  /** False when the client disconnected before the end. */
  readonly complete: boolean;
}

export type RequestObserver = (record: RequestRecord) => void;

const maxLoggedCharacters = 256;

export interface RequestTracker {
  /** Calls the observers once, after the response is sent or the connection is closed. */
  track(request: IncomingMessage, response: ServerResponse, route: RequestPath['kind']): void;
  /** Resolves when no request is active; the last ones are logged then. */
  idle(): Promise<void>;
}

/** @param observers called in this order, with each request once */
export function createRequestTracker(clock: Clock, observers: readonly RequestObserver[]): RequestTracker {
  let activeCount = 0;
  let waiting: (() => void)[] = [];
  const ended = (record: RequestRecord): void => {
    for (const observe of observers) observe(record);
    activeCount -= 1;
    if (activeCount > 0) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  return {
    track: (request, response, route) => {
      activeCount += 1;
      const { socket, method = '', url = '' } = request;
      const remote = socket.remoteAddress ?? '';
      const startedMs = clock.monotonicMs();
      const writtenBefore = socket.bytesWritten;
      // 'close' follows every end, including an aborted download, and 'finish' does not. It is emitted because this
      // response has its socket (answer-in-turn). A response that waits for a socket does not learn that the connection is
      // closed.
      response.on('close', () =>
        ended({
          route,
          method,
          path: url.slice(0, maxLoggedCharacters),
          status: response.statusCode,
          bytes: socket.bytesWritten - writtenBefore,
          durationMs: Math.round((clock.monotonicMs() - startedMs) * 1000) / 1000,
          remote,
          complete: response.writableFinished,
        }),
      );
    },
    idle: () => (activeCount === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
}

/** @returns an observer that logs each request as `request` at level info */
export function accessLog(log: Logger): RequestObserver {
  return (record) => log.info(record, 'request');
}
