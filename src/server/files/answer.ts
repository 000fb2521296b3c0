// Writes the head of an answer, and a body that is there as a whole. Owns how it is written, and knows no file.
import type { ServerResponse } from 'node:http';

/** Names and values in turn: Node writes them as they stand, and makes no map of them first. */
export type Headers = readonly string[];

const always = ['X-Content-Type-Options', 'nosniff'] as const;
const plainText = ['Content-Type', 'text/plain; charset=utf-8'] as const;

export function writeHead(response: ServerResponse, status: number, headers: Headers): void {
  response.writeHead(status, [...always, ...headers]);
}

/** An answer that never has a body, as 304, or whose headers say how long it would be. */
export function answerHead(response: ServerResponse, status: number, headers: Headers): void {
  writeHead(response, status, headers);
  response.end();
}

/** Of HEAD Node leaves the body out. */
export function answer(
  response: ServerResponse,
  status: number,
  headers: Headers,
  body: string | Buffer,
): void {
  writeHead(response, status, [...headers, 'Content-Length', String(Buffer.byteLength(body))]);
  response.end(body);
}

export function answerText(response: ServerResponse, status: number, headers: Headers, text: string): void {
  answer(response, status, [...plainText, ...headers], text);
}
