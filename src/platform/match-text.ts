// Evaluates somebody's regular expression on somebody else's text in a thread of its own, which is ended at a
// deadline: a pattern that backtracks without end holds nobody up. Never evaluates one in the main thread.
import { Worker } from 'node:worker_threads';

export interface MatchTask {
  /** With the flags `mu`. */
  readonly pattern: string;
  readonly text: string;
}

export type MatchResult =
  /** `line` is the line in which the first match begins. */
  | { readonly kind: 'matched'; readonly line: string }
  | { readonly kind: 'none' | 'timed-out' }
  | { readonly kind: 'failed'; readonly reason: string };

/** Never rejects. */
export function matchText(
  task: MatchTask,
  { timeoutMs }: { readonly timeoutMs: number },
): Promise<MatchResult> {
  return new Promise((resolve) => {
    const worker = new Worker(new URL('./match-text-worker.js', import.meta.url), {
      workerData: task,
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 32 },
    });
    const finish = (result: MatchResult): void => {
      clearTimeout(deadline);
      resolve(result);
      void worker.terminate();
    };
    const deadline = setTimeout(() => finish({ kind: 'timed-out' }), timeoutMs);
    worker.once('message', (result: MatchResult) => finish(result));
    worker.once('error', (error) => finish({ kind: 'failed', reason: error.message }));
    worker.once('exit', () => finish({ kind: 'failed', reason: 'the thread ended without an answer' }));
  });
}
