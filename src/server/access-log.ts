// One structured line a request, however it ended, and the same facts for the metrics. Headers are never
// logged: a proxy's credentials may be in them.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '../platform/telemetry/log.js';
import type { Clock } from '../platform/time/clock.js';
import type { RequestPath } from './files/request-path.js';

export interface RequestRecord {
  readonly route: RequestPath['kind'];
  readonly method: string;
  /** As it came, cut at maxLoggedCharacters. */
  readonly path: string;
  readonly status: number;
  /** Headers and body, as far as they were handed to the socket. */
  readonly bytes: number;
  readonly durationMs: number;
  readonly remote: string;
  /** False when the client went away before the end. */
  readonly complete: boolean;
}

export type RequestObserver = (record: RequestRecord) => void;

const maxLoggedCharacters = 256;

export interface RequestTracker {
  /** Calls the observers once, when the answer is out or the connection gone. */
  track(request: IncomingMessage, response: ServerResponse, route: RequestPath['kind']): void;
  /** Resolves when no request is under way: the last ones are then logged. */
  idle(): Promise<void>;
}

export function createRequestTracker(clock: Clock, observers: readonly RequestObserver[]): RequestTracker {
  let underWay = 0;
  let waiting: (() => void)[] = [];
  const ended = (record: RequestRecord): void => {
    for (const observe of observers) observe(record);
    underWay -= 1;
    if (underWay > 0) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  return {
    track: (request, response, route) => {
      underWay += 1;
      const { socket, method = '', url = '' } = request;
      const remote = socket.remoteAddress ?? '';
      const startedMs = clock.monotonicMs();
      const writtenBefore = socket.bytesWritten;
      // 'close' comes after every end, an aborted download included; 'finish' would not. It comes because this answer has
      // its socket (answer-in-turn): one that waits for it does not learn that the connection is gone.
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
    idle: () => (underWay === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
}

export function accessLog(log: Logger): RequestObserver {
  return (record) => log.info(record, 'request');
}
