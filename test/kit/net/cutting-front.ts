// Stands between hosts and a real server, and cuts or holds what is sent of archives and deltas. Passes everything on as it
// comes, requests with their headers and answers with theirs, and counts the bytes of files that it let through.
import { request as ask } from 'node:http';
import { type HttpFixture, httpFixture } from './http-fixture.js';

export interface CuttingFront extends HttpFixture {
  /** Of the server behind it. */
  readonly origin: string;
  /** The next answer with a file, behind those of earlier calls, ends after so many bytes: by a dead connection, or nothing more comes. */
  endNext(end: AnswerEnd): void;
  /** Sends the rest of each answer that ended by silence. */
  release(): void;
  /** Of each request for a file, in their order. */
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

/** @param origin of the server behind it; without `ranges` it sends each file as a whole */
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
