// The thread of match-text: one pattern, one text, one answer. It may be ended at any point.
import { parentPort, workerData } from 'node:worker_threads';
import type { MatchResult, MatchTask } from './match-text.js';

parentPort?.postMessage(match(workerData as MatchTask));

function match({ pattern, text }: MatchTask): MatchResult {
  const found = new RegExp(pattern, 'mu').exec(text);
  if (found === null) return { kind: 'none' };
  const start = text.lastIndexOf('\n', found.index - 1) + 1;
  const end = text.indexOf('\n', found.index);
  return { kind: 'matched', line: text.slice(start, end === -1 ? undefined : end).slice(0, 200) };
}
