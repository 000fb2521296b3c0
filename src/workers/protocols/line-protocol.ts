// Parses answers of daemons with a text protocol on a Unix socket. An answer ends with the connection (unbound, NSD, HAProxy), after
// one line, or with a line that matches a test (BIRD). Pure; the driver judges answers.
import type { PatternVerdict } from '../../platform/bounded-pattern.js';

/** More than any verdict, because some daemons list all changes. */
export const maxLineAnswerBytes = 64_000;
const maxLines = 2000;

type LineTest = (line: string) => PatternVerdict;

export interface LineRules {
  /** `eof`: all text until the peer closes. A test: up to the first line that matches, inclusive. */
  readonly end: 'eof' | 'line' | LineTest;
  /** Matches lines at the beginning that are not part of the answer. */
  readonly greeting?: LineTest;
}

export type LineAnswer =
  | { readonly kind: 'text'; readonly text: string }
  /** The peer closed without a byte. Some daemons answer like this; a daemon that exits does too. */
  | { readonly kind: 'silence' }
  | { readonly kind: 'malformed'; readonly reason: string };

export interface LineReader {
  /** Takes the next bytes. @returns the answer once it is complete; it ignores later bytes */
  push(chunk: Uint8Array): LineAnswer | undefined;
  /** Must be called when the peer closed. @returns the answer, if the close completes it */
  end(): LineAnswer | undefined;
}

/** @returns a reader for one answer. An answer beyond the bounds of bytes or lines is `malformed`. */
export function createLineReader(rules: LineRules): LineReader {
  let bytes = 0;
  let lineCount = 0;
  let greeted = rules.greeting === undefined;
  let rest: Buffer = Buffer.alloc(0);
  /** Chunks without a line end. They are joined only at a line end, because joining each byte would copy all of them. */
  let pending: Uint8Array[] = [];
  const lines: string[] = [];

  const take = (line: string): LineAnswer | undefined => {
    lineCount += 1;
    if (lineCount > maxLines) return malformed(`an answer of more than ${maxLines} lines`);
    if (!greeted) {
      const isGreeting = rules.greeting?.(line);
      if (isGreeting === 'match') return undefined;
      if (isGreeting === 'no-verdict') return malformed('`greeting` takes too long on its first line');
      greeted = true;
    }
    lines.push(line);
    return isEnd(rules.end, line, lines);
  };
  const join = (): void => {
    rest = Buffer.concat([rest, ...pending]);
    pending = [];
  };
  const takeLines = (): LineAnswer | undefined => {
    for (let at = rest.indexOf(0x0a); at >= 0; at = rest.indexOf(0x0a)) {
      const line = rest.subarray(0, at).toString('utf8').replace(/\r$/, '');
      rest = rest.subarray(at + 1);
      const answer = take(line);
      if (answer !== undefined) return answer;
    }
    return undefined;
  };
  return {
    push: (chunk) => {
      bytes += chunk.length;
      if (bytes > maxLineAnswerBytes) return malformed(`an answer of more than ${maxLineAnswerBytes} bytes`);
      pending.push(chunk);
      if (!chunk.includes(0x0a)) return undefined;
      join();
      return takeLines();
    },
    end: () => {
      if (rules.end !== 'eof') return undefined;
      if (bytes === 0) return { kind: 'silence' };
      join();
      const last = rest.length === 0 ? undefined : take(rest.toString('utf8'));
      return last ?? { kind: 'text', text: lines.join('\n') };
    },
  };
}

function isEnd(end: LineRules['end'], line: string, lines: readonly string[]): LineAnswer | undefined {
  const whole: LineAnswer = { kind: 'text', text: lines.join('\n') };
  if (end === 'eof') return undefined;
  if (end === 'line') return whole;
  const verdict = end(line);
  if (verdict === 'no-verdict') return malformed('`until` takes too long on a line of its answer');
  return verdict === 'match' ? whole : undefined;
}

function malformed(reason: string): LineAnswer {
  return { kind: 'malformed', reason };
}
