// Small leaks like real ones: one descriptor, or 10 kB of memory, at each call. `end` releases them.
import * as fs from 'node:fs';

export interface PlantedLeak {
  act(): void;
  end(): void;
}

export type Plant = 'descriptor' | 'memory';

const leakedBytes = 10_000;

export const planted: Readonly<Record<Plant, () => PlantedLeak>> = {
  descriptor: () => {
    const open: number[] = [];
    return {
      act: () => void open.push(fs.openSync('/dev/null', 'r')),
      end: () => {
        for (const descriptor of open.splice(0)) fs.closeSync(descriptor);
      },
    };
  },
  memory: () => {
    const kept: number[][] = [];
    return {
      act: () => void kept.push(Array.from({ length: leakedBytes / 8 }, Math.random)),
      end: () => {
        kept.length = 0;
      },
    };
  },
};
