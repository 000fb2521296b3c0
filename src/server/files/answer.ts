// Writes the head of a response, and a body that is completely in memory. Knows no file.
import type { ServerResponse } from 'node:http';

/** Alternating names and values. Node writes them unchanged, without building a map first. */
export type Headers = readonly string[];

const always = ['X-Content-Type-Options', 'nosniff'] as const;
const plainText = ['Content-Type', 'text/plain; charset=utf-8'] as const;

/** Sends the status and the headers with `nosniff`. The caller sends the body and ends the response. */
export function writeHead(response: ServerResponse, status: number, headers: Headers): void {
  response.writeHead(status, [...always, ...headers]);
}

/** For a response without a body, such as 304, or for HEAD with the headers of the body. */
export function answerHead(response: ServerResponse, status: number, headers: Headers): void {
  writeHead(response, status, headers);
  response.end();
}

/** Node omits the body for HEAD. */
export function answer(
  response: ServerResponse,
  status: number,
  headers: Headers,
  body: string | Buffer,
): void {
  writeHead(response, status, [...headers, 'Content-Length', String(Buffer.byteLength(body))]);
  response.end(body);
}

/** Sends a complete response with plain text; a HEAD request gets its headers only. */
export function answerText(response: ServerResponse, status: number, headers: Headers, text: string): void {
  answer(response, status, [...plainText, ...headers], text);
}
