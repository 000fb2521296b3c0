// The progress of long work: its steps, and the amount of each that is done. The implementation knows the time and the terminal.
// Progress never changes the work.

/** Progress of a step. */
export interface Amount {
  /** May be a fraction while a file is processed. */
  readonly done: number;
  readonly total: number;
  readonly unit: 'bytes' | 'files';
}

export interface WorkReport {
  /** A step begins. */
  begin(step: string, text?: string): void;
  /** Called at each change; the implementation may skip calls. */
  progress(step: string, amount: Amount, text?: string): void;
}

/** Reports a further amount of a part. */
export type More = (amount: number) => void;

/**
 * Adds up the progress of parts of a known total. A part may do less than expected, because a file existed or failed: it counts as
 * done when the next part begins. A part that does more never counts for more.
 * @returns a function that begins the next part
 */
export function createTally(
  total: number,
  report: (done: number, total: number) => void,
): (size: number) => More {
  let ended = 0;
  return (size) => {
    const begun = ended;
    ended += size;
    let done = 0;
    report(begun, total);
    return (amount) => {
      done = Math.min(size, done + amount);
      report(begun + done, total);
    };
  };
}
