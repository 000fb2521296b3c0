// One structured line a request, however it ended, and the same facts for the metrics. Headers are never
// logged: a proxy's credentials may be in them.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../platform/clock.js';
import type { Logger } from '../platform/log.js';
import type { RequestPath } from './request-path.js';

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

/** Calls the observers once, when the answer is out or the connection gone. */
export function observeRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  route: RequestPath['kind'],
  clock: Clock,
  observers: readonly RequestObserver[],
): void {
  const startedMs = clock.monotonicMs();
  const { socket } = request.raw;
  const writtenBefore = socket.bytesWritten;
  const remote = socket.remoteAddress ?? '';
  // 'close' comes after every end, an aborted download included; 'finish' would not.
  reply.raw.once('close', () => {
    const record: RequestRecord = {
      route,
      method: request.method,
      path: request.originalUrl.slice(0, maxLoggedCharacters),
      status: reply.raw.statusCode,
      bytes: socket.bytesWritten - writtenBefore,
      durationMs: Math.round((clock.monotonicMs() - startedMs) * 1000) / 1000,
      remote,
      complete: reply.raw.writableFinished,
    };
    for (const observe of observers) observe(record);
  });
}

export function accessLog(log: Logger): RequestObserver {
  return (record) => log.info(record, 'request');
}
