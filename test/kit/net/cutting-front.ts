// A proxy between hosts and a real server, which stops answers with archives and deltas. It forwards all requests and answers
// unchanged, and counts the sent bytes of files.
import { request as ask } from 'node:http';
import { type HttpFixture, httpFixture } from './http-fixture.js';

export interface CuttingFront extends HttpFixture {
  /** URL of the server behind it. */
  readonly origin: string;
  /** Ends the next answer with a file after this many bytes, in order of the calls: by a closed connection, or by silence. */
  endNext(end: AnswerEnd): void;
  /** Sends the rest of each answer that stopped by silence. */
  release(): void;
  /** Answers with a file, in order of their requests. */
  readonly files: readonly FileAnswer[];
}

export interface AnswerEnd {
  readonly bytes: number;
  readonly by: 'a cut' | 'silence';
}

export interface FileAnswer {
  readonly path: string;
  readonly range: string | undefined;
  readonly ifRange: string | undefined;
  status: number;
  sentBytes: number;
}

/** @param origin URL of the server; without `ranges` each file is sent complete */
export async function cuttingFront(origin: string, { ranges = true } = {}): Promise<CuttingFront> {
  const files: FileAnswer[] = [];
  const ends: AnswerEnd[] = [];
  const silent = new Set<() => void>();
  const fixture = await httpFixture((request, response) => {
    const path = request.url ?? '/';
    const isFile = path.startsWith('/targets/');
    const { range, 'if-range': version } = request.headers;
    const file: FileAnswer = { path, range, ifRange: version?.toString(), status: 0, sentBytes: 0 };
    const limit = isFile ? ends.shift() : undefined;
    if (isFile) files.push(file);
    const { range: _, ...whole } = request.headers;
    const headers = ranges ? request.headers : whole;
    const behind = ask(new URL(path, origin), { headers }, (answer) => {
      file.status = answer.statusCode ?? 0;
      response.writeHead(file.status, answer.headers);
      let maxBytes = limit?.bytes ?? Number.POSITIVE_INFINITY;
      const send = (chunk: Buffer): void => {
        const piece = chunk.subarray(0, Math.max(0, maxBytes - file.sentBytes));
        file.sentBytes += piece.length;
        const isEnd = file.sentBytes === maxBytes;
        response.write(piece, () => {
          if (isEnd && limit?.by === 'a cut') response.destroy();
        });
        if (!isEnd) return;
        answer.pause();
        silent.add(() => {
          maxBytes = Number.POSITIVE_INFINITY;
          send(chunk.subarray(piece.length));
          answer.resume();
        });
      };
      answer.on('data', send);
      answer.on('end', () => response.end());
    });
    behind.on('error', () => response.destroy());
    response.on('close', () => behind.destroy());
    behind.end();
  });
  return {
    ...fixture,
    ...{ origin, files },
    endNext: (end) => void ends.push(end),
    release: () => {
      for (const goOn of silent) goOn();
      silent.clear();
    },
  };
}
