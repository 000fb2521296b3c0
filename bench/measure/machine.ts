// On what was measured: what decides figures, and nothing that says whose machine it is.
import { availableParallelism, loadavg, release, totalmem } from 'node:os';

export interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
  readonly kernel: string;
  readonly node: string;
  /** Of the minute before. Above the number of cores, others worked beside the measurement. */
  readonly load: number;
}

/** To be taken before the first measurement, which is load itself. */
export function thisMachine(): Machine {
  return {
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    // Of the kernel the version alone; what comes after it may name who made it.
    kernel: /^\d+\.\d+/.exec(release())?.[0] ?? 'unknown',
    node: process.version,
    load: loadavg()[0] ?? 0,
  };
}
