// The child processes that run the crash matrix in parallel, one for each core. One child prepares and runs each cycle; cycles
// with the same prepared disk use the same child.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { MatrixCase } from './matrix-case.js';
import type { MatrixCycle } from './matrix-cycles.js';
import type { Moment } from './matrix-faults.js';

export interface MatrixOrder {
  readonly cycle: string;
  readonly cases: readonly MatrixCase[];
}

export interface MatrixViolation {
  readonly cycle: string;
  readonly state: string;
  readonly message: string;
}

export interface MatrixAnswer {
  readonly moments: readonly Moment[];
  readonly violations: readonly MatrixViolation[];
  readonly durationMs: number;
}

export interface MatrixPool {
  /** Runs `work` for each cycle in parallel; the child that has prepared a cycle handles all its orders. */
  each(
    cycles: readonly MatrixCycle[],
    work: (
      cycle: MatrixCycle,
      order: (cases: readonly MatrixCase[]) => Promise<MatrixAnswer>,
    ) => Promise<void>,
  ): Promise<void>;
  close(): Promise<void>;
}

export function openPool(size = Math.min(availableParallelism(), 4)): MatrixPool {
  const path = fileURLToPath(new URL('./matrix-child.js', import.meta.url));
  const children = Array.from({ length: size }, () => fork(path, { execArgv: [] }));
  const owners = new Map<MatrixCycle['prepare'], ChildProcess>();
  return {
    each: async (cycles, work) => {
      const left = [...cycles];
      const take = (child: ChildProcess): MatrixCycle | undefined => {
        const index = left.findIndex(({ prepare }) => (owners.get(prepare) ?? child) === child);
        const [cycle] = index < 0 ? [] : left.splice(index, 1);
        if (cycle !== undefined) owners.set(cycle.prepare, child);
        return cycle;
      };
      await Promise.all(
        children.map(async (child) => {
          for (let cycle = take(child); cycle !== undefined; cycle = take(child)) {
            const { name } = cycle;
            await work(cycle, (cases) => ask(child, { cycle: name, cases }));
          }
        }),
      );
    },
    close: async () => {
      for (const child of children) {
        child.disconnect();
        if (child.exitCode === null) await once(child, 'exit');
      }
    },
  };
}

async function ask(child: ChildProcess, order: MatrixOrder): Promise<MatrixAnswer> {
  const ended = new AbortController();
  const { signal } = ended;
  const answer = once(child, 'message', { signal });
  const exit = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`a process of the matrix ended with ${code}`);
  });
  child.send(order);
  try {
    const [value] = (await Promise.race([answer, exit])) as [MatrixAnswer | { readonly failure: string }];
    if ('failure' in value) throw new Error(`${order.cycle}: ${value.failure}`);
    return value;
  } finally {
    ended.abort();
    await Promise.allSettled([answer, exit]);
  }
}
