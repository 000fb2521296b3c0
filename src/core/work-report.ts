// What long work says of itself while it goes on: its steps, and how far each is. Who shows it knows the time and the terminal; this
// knows neither, and nothing said here changes what is done.

/** How far a step is. */
export interface Amount {
  /** Of a file that is under way a fraction. */
  readonly done: number;
  readonly total: number;
  readonly unit: 'bytes' | 'files';
}

export interface WorkReport {
  /** A step is under way. */
  begin(step: string, text?: string): void;
  /** Said as often as it is known; what is too much for a reader is left out by who shows it. */
  progress(step: string, amount: Amount, text?: string): void;
}

/** More of a part is done. */
export type More = (amount: number) => void;

/**
 * Adds up parts of a total that is known before. A part that did less than was thought (one was there already, one failed) is done
 * when the next begins, and one that did more never counts for more.
 * @returns begins the next part
 */
export function createTally(
  total: number,
  tell: (done: number, total: number) => void,
): (size: number) => More {
  let ended = 0;
  return (size) => {
    const begun = ended;
    ended += size;
    let done = 0;
    tell(begun, total);
    return (amount) => {
      done = Math.min(size, done + amount);
      tell(begun + done, total);
    };
  };
}
