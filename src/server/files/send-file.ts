// Sends bytes of the repository from memory or from a file, or a 404. Sets the headers for caches and for clients that
// resume a download. The caller has chosen the file.
import * as fs from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { answer, answerHead, answerText, type Headers, writeHead } from './answer.js';
import { isNotModified, parseRange } from './http-conditions.js';
import type { LiveBytes } from './live-file.js';
import type { ServedFile } from './served-file.js';

const json = 'application/json';
const immutable = 'public, max-age=31536000, immutable';
/**
 * Twice as many bytes are buffered for each client that reads nothing, so that thousands of such clients do not exhaust the
 * memory.
 */
const readAheadBytes = 65_536;

/** Sends timestamp.json. A cache must revalidate each time, and gets 304 when nothing was published. */
export function sendLive(request: IncomingMessage, response: ServerResponse, live: LiveBytes): void {
  const headers: Headers = ['ETag', live.etag, 'Cache-Control', 'no-cache'];
  if (isNotModified(request.headers['if-none-match'], live.etag)) answerHead(response, 304, headers);
  else answer(response, 200, [...headers, 'Content-Type', json], live.bytes);
}

/**
 * Sends a file with content that never changes under its name.
 * @param file open; it is closed in every case
 */
export function sendImmutable(
  request: IncomingMessage,
  response: ServerResponse,
  file: ServedFile,
  name: string,
): void {
  const etag = etagOf(file);
  const headers = ['ETag', etag, 'Cache-Control', immutable, 'Accept-Ranges', 'bytes'];
  const sendNothing = (status: number, more: Headers): void => {
    fs.closeSync(file.descriptor);
    answerHead(response, status, [...headers, ...more]);
  };
  if (isNotModified(request.headers['if-none-match'], etag)) return void sendNothing(304, []);
  // Range is defined only for GET (RFC 9110 section 14.2).
  const wanted = request.method === 'GET' ? request.headers.range : undefined;
  const range = parseRange(wanted, request.headers['if-range']?.toString(), etag, file.length);
  if (range === 'unsatisfiable') {
    return void sendNothing(416, ['Content-Range', `bytes */${file.length}`, 'Content-Length', '0']);
  }
  const { first, last } = range ?? { first: 0, last: file.length - 1 };
  const length = last - first + 1;
  // The archives are .br files. With a Content-Encoding header, clients and proxies would decompress them.
  const type = name.startsWith('metadata/') ? json : 'application/octet-stream';
  const about = ['Content-Type', type, 'Content-Length', String(length)];
  if (range !== undefined) about.push('Content-Range', `bytes ${first}-${last}/${file.length}`);
  const status = range === undefined ? 200 : 206;
  if (request.method === 'HEAD' || length === 0) return void sendNothing(status, about);
  writeHead(response, status, [...headers, ...about]);
  sendBytes(response, file, first, length);
}

/** @param maxAgeSeconds how long a cache may keep the absence of the file; 0: not at all (`no-store`) */
export function sendAbsent(response: ServerResponse, maxAgeSeconds: number): void {
  const control = maxAgeSeconds === 0 ? 'no-store' : `public, max-age=${maxAgeSeconds}`;
  answerText(response, 404, ['Cache-Control', control], 'not found\n');
}

/** Built from size and time, as in nginx, so that a damaged upload and its repaired file have different ETags. */
function etagOf(file: ServedFile): string {
  return `"${Math.trunc(file.modifiedMs).toString(16)}-${file.length.toString(16)}"`;
}

function sendBytes(response: ServerResponse, file: ServedFile, first: number, length: number): void {
  const stream = fs.createReadStream('', {
    fd: file.descriptor,
    start: first,
    end: first + length - 1,
    highWaterMark: readAheadBytes,
  });
  // Where the file is truncated or unreadable during the response, the connection is closed, because the client would wait
  // for the missing bytes.
  stream.once('end', () => {
    if (stream.bytesRead < length) response.destroy();
  });
  stream.once('error', () => response.destroy());
  // The stream owns the descriptor, and must not outlive the connection.
  response.once('close', () => stream.destroy());
  stream.pipe(response);
}
