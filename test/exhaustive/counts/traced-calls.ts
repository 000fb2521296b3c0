// Runs a program under strace and counts its expensive system calls. Owns parsing the trace.
import { readFileSync } from 'node:fs';
import { runWritProcess } from '../../kit/cli/writ-process.js';

export interface CallCounts {
  /** Files created below the directory. */
  readonly filesCreated: number;
  readonly directoriesRead: number;
  /** fsync, fdatasync and syncfs. */
  readonly flushes: number;
  readonly renames: number;
}

/** @param below the directory of counted files, without others such as /proc */
export async function tracedWrit(args: readonly string[], trace: string, below: string): Promise<CallCounts> {
  const calls = 'openat,getdents64,fsync,fdatasync,syncfs,rename,renameat,renameat2';
  const under = [
    'strace',
    '-f',
    '-qq',
    '-y',
    '-s',
    '0',
    '-e',
    `trace=${calls}`,
    '-e',
    'signal=none',
    '-o',
    trace,
  ];
  const run = await runWritProcess(args, { under });
  if (run.exitCode !== 0)
    throw new Error(`writ ${args[0]} ended with ${run.exitCode}: ${run.stdout}${run.stderr}`);
  return countCalls(readFileSync(trace, 'utf8'), below);
}

/** @param record of `strace -f -y` */
export function countCalls(record: string, below: string): CallCounts {
  const lines = record.split('\n');
  const count = (pattern: RegExp): number => lines.filter((line) => pattern.test(line)).length;
  const created = new Set(
    lines
      .filter((line) => /\bopenat\(.*O_CREAT/.test(line) || /<\.\.\. openat resumed>/.test(line))
      .map((line) => /= \d+<([^>]*)>$/.exec(line)?.[1] ?? '')
      .filter((path) => path.startsWith(`${below}/`)),
  );
  return {
    filesCreated: created.size,
    // The last result of each directory is empty.
    directoriesRead: count(/getdents64.*= 0$/),
    flushes: count(/\b(?:fsync|fdatasync|syncfs)\(/),
    renames: count(/\brename(?:at2?)?\(/),
  };
}
