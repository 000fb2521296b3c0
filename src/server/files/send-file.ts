// Answers with bytes of the repository: from memory, from a file, or that there are none. Owns the headers that
// caches and resuming clients go by; which file a request means is decided before.
import * as fs from 'node:fs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isNotModified, parseRange } from './http-conditions.js';
import type { LiveBytes } from './live-file.js';
import type { ServedFile } from './served-file.js';

const json = 'application/json';
const immutable = 'public, max-age=31536000, immutable';
/** Twice as much is held for each client that reads nothing: thousands of them must not take the memory of the machine. */
const readAheadBytes = 65_536;

/** timestamp.json: a cache has to ask each time, and gets 304 when nothing was published. */
export function sendLive(request: FastifyRequest, reply: FastifyReply, live: LiveBytes): FastifyReply {
  reply.header('etag', live.etag).header('cache-control', 'no-cache');
  if (isNotModified(request.headers['if-none-match'], live.etag)) return reply.code(304).send();
  return reply.header('content-type', json).send(live.bytes);
}

/**
 * A file whose content never changes under its name.
 * @param file open; closed here in every case
 */
export function sendImmutable(
  request: FastifyRequest,
  reply: FastifyReply,
  file: ServedFile,
  name: string,
): FastifyReply {
  const etag = etagOf(file);
  // The archives are .br FILES: a content-encoding header would have clients and proxies unpack them.
  const type = name.startsWith('metadata/') ? json : 'application/octet-stream';
  reply.header('etag', etag).header('cache-control', immutable).header('accept-ranges', 'bytes');
  if (isNotModified(request.headers['if-none-match'], etag)) return sendNothing(reply.code(304), file);
  // Range is defined for GET alone (RFC 9110 section 14.2).
  const wanted = request.method === 'GET' ? request.headers.range : undefined;
  const range = parseRange(wanted, request.headers['if-range']?.toString(), etag, file.length);
  if (range === 'unsatisfiable') {
    return sendNothing(reply.code(416).header('content-range', `bytes */${file.length}`), file);
  }
  const { first, last } = range ?? { first: 0, last: file.length - 1 };
  const length = last - first + 1;
  reply.header('content-type', type).header('content-length', length);
  if (range !== undefined) reply.code(206).header('content-range', `bytes ${first}-${last}/${file.length}`);
  if (request.method === 'HEAD' || length === 0) return sendNothing(reply, file);
  return reply.send(streamOf(reply, file, first, length));
}

/** @param maxAgeSeconds how long a cache may believe that the file is not there; 0: not at all. */
export function sendAbsent(reply: FastifyReply, maxAgeSeconds: number): FastifyReply {
  const control = maxAgeSeconds === 0 ? 'no-store' : `public, max-age=${maxAgeSeconds}`;
  return reply.code(404).header('cache-control', control).type('text/plain').send('not found\n');
}

function sendNothing(reply: FastifyReply, file: ServedFile): FastifyReply {
  fs.closeSync(file.descriptor);
  return reply.send();
}

/** Size and time, as nginx makes it: a damaged upload that was repaired must not answer for its old bytes. */
function etagOf(file: ServedFile): string {
  return `"${Math.trunc(file.modifiedMs).toString(16)}-${file.length.toString(16)}"`;
}

function streamOf(reply: FastifyReply, file: ServedFile, first: number, length: number): fs.ReadStream {
  const stream = fs.createReadStream('', {
    fd: file.descriptor,
    start: first,
    end: first + length - 1,
    highWaterMark: readAheadBytes,
  });
  // A file cut short while it is read leaves the client waiting for bytes that never come: cut the connection.
  stream.once('end', () => {
    if (stream.bytesRead < length) reply.raw.destroy();
  });
  return stream;
}
