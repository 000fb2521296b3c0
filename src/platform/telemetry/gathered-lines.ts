// Lines that are written together, a moment after the first of them: a system call for each would cost more than the line. None
// is lost by an end of the process but a kill. Knows nothing of what a line says.

export interface LineSink {
  write(lines: string): unknown;
}

/** So many at once, however many come in one moment. */
const maxGatheredCharacters = 65_536;

/**
 * @param sink is handed many lines at a time
 * @param later runs its argument when the moment is over
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
