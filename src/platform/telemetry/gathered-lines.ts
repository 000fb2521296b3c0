// The lines of one turn of the event loop, written together at its end: a write for each would cost more than the line. What is
// gathered is a moment old at most, and there at every end of the process but a kill. Knows nothing of what a line says.

export interface LineSink {
  write(lines: string): unknown;
}

/** So many at once, however many come in one turn. */
const maxGatheredCharacters = 65_536;

/** @returns a sink of single lines, that hands them on to `sink` */
export function gatherLines(sink: LineSink): LineSink {
  let lines = '';
  const flush = (): void => {
    process.off('exit', flush);
    if (lines === '') return;
    const gathered = lines;
    lines = '';
    sink.write(gathered);
  };
  return {
    write: (line: string) => {
      if (lines === '') {
        setImmediate(flush);
        process.once('exit', flush);
      }
      lines += line;
      if (lines.length > maxGatheredCharacters) flush();
    },
  };
}
