// Takes the next generation number and mtime out of the ledger, durably, before anything carries them.
import type { Host } from '../state/host.js';
import { nextMtimeSeconds } from '../state/ledger.js';

export interface Reserved {
  readonly generation: number;
  /** Whole seconds, later than any used before. */
  readonly mtimeSeconds: number;
}

/** A crash after it wastes a number; reusing one would let two trees share a name. */
export function reserveGeneration(host: Host): Reserved {
  const ledger = host.ledger.read();
  const mtimeSeconds = nextMtimeSeconds(ledger, host.clock.nowMs());
  const generation = ledger.nextGeneration;
  host.ledger.write({ ...ledger, nextGeneration: generation + 1, lastMtimeSeconds: mtimeSeconds });
  return { generation, mtimeSeconds };
}
