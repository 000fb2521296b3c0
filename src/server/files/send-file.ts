// Answers with bytes of the repository: from memory, from a file, or that there are none. Owns the headers that
// caches and resuming clients go by; which file a request means is decided before.
import * as fs from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { answer, answerHead, answerText, type Headers, writeHead } from './answer.js';
import { isNotModified, parseRange } from './http-conditions.js';
import type { LiveBytes } from './live-file.js';
import type { ServedFile } from './served-file.js';

const json = 'application/json';
const immutable = 'public, max-age=31536000, immutable';
/** Twice as much is held for each client that reads nothing: thousands of them must not take the memory of the machine. */
const readAheadBytes = 65_536;

/** timestamp.json: a cache has to ask each time, and gets 304 when nothing was published. */
export function sendLive(request: IncomingMessage, response: ServerResponse, live: LiveBytes): void {
  const headers: Headers = ['ETag', live.etag, 'Cache-Control', 'no-cache'];
  if (isNotModified(request.headers['if-none-match'], live.etag)) answerHead(response, 304, headers);
  else answer(response, 200, [...headers, 'Content-Type', json], live.bytes);
}

/**
 * A file whose content never changes under its name.
 * @param file open; closed here in every case
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
  // Range is defined for GET alone (RFC 9110 section 14.2).
  const wanted = request.method === 'GET' ? request.headers.range : undefined;
  const range = parseRange(wanted, request.headers['if-range']?.toString(), etag, file.length);
  if (range === 'unsatisfiable') {
    return void sendNothing(416, ['Content-Range', `bytes */${file.length}`, 'Content-Length', '0']);
  }
  const { first, last } = range ?? { first: 0, last: file.length - 1 };
  const length = last - first + 1;
  // The archives are .br FILES: a content-encoding header would have clients and proxies unpack them.
  const type = name.startsWith('metadata/') ? json : 'application/octet-stream';
  const about = ['Content-Type', type, 'Content-Length', String(length)];
  if (range !== undefined) about.push('Content-Range', `bytes ${first}-${last}/${file.length}`);
  const status = range === undefined ? 200 : 206;
  if (request.method === 'HEAD' || length === 0) return void sendNothing(status, about);
  writeHead(response, status, [...headers, ...about]);
  sendBytes(response, file, first, length);
}

/** @param maxAgeSeconds how long a cache may believe that the file is not there; 0: not at all. */
export function sendAbsent(response: ServerResponse, maxAgeSeconds: number): void {
  const control = maxAgeSeconds === 0 ? 'no-store' : `public, max-age=${maxAgeSeconds}`;
  answerText(response, 404, ['Cache-Control', control], 'not found\n');
}

/** Size and time, as nginx makes it: a damaged upload that was repaired must not answer for its old bytes. */
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
  // A file cut short, or broken, while it is read leaves the client waiting for bytes that never come: cut the connection.
  stream.once('end', () => {
    if (stream.bytesRead < length) response.destroy();
  });
  stream.once('error', () => response.destroy());
  // The descriptor is the stream's: it must not outlive the connection.
  response.once('close', () => stream.destroy());
  stream.pipe(response);
}
