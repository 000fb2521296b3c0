// Buffers lines and writes them together a moment after the first, because a system call for each line costs more than the line. Only
// a kill of the process loses lines. Independent of their content.

export interface LineSink {
  write(lines: string): unknown;
}

/** Size at which the buffer is written at once. */
const maxGatheredCharacters = 65_536;

/**
 * @param sink receives many lines in one call, in their order, never an empty text
 * @param later runs its argument after the moment; it is not called again before that
 * @returns a sink that writes at the moment, at the exit of the process, or at once above 65,536 characters. `write` returns
 *   undefined. Errors of `sink` are not caught.
 */
export function gatherLines(sink: LineSink, later: (flush: () => void) => void): LineSink {
  let lines = '';
  let isWaiting = false;
  const flush = (): void => {
    const gathered = lines;
    lines = '';
    if (gathered !== '') sink.write(gathered);
  };
  const momentIsOver = (): void => {
    isWaiting = false;
    process.off('exit', flush);
    flush();
  };
  return {
    write: (line: string) => {
      lines += line;
      if (lines.length > maxGatheredCharacters) flush();
      if (isWaiting) return;
      isWaiting = true;
      process.once('exit', flush);
      later(momentIsOver);
    },
  };
}
