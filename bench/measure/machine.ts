// The machine of the figures: the facts that affect them, and none that identify the machine.
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
    // Only the version of the kernel, because its suffix may name its builder.
    kernel: /^\d+\.\d+/.exec(release())?.[0] ?? 'unknown',
    node: process.version,
    load: loadavg()[0] ?? 0,
  };
}
