// `writ resume`: ends a pause, every hold and a block, so that the next cycle takes what the repository offers.
import type { ResumeResult } from '../../core/protocol/control-protocol.js';
import type { Host } from '../state/host.js';

export function resume(host: Pick<Host, 'ledger'>): ResumeResult {
  // A candidate that a person lets in again begins anew: its next crash is the first.
  const { blocked, pause, crashes: _, ...ledger } = host.ledger.read();
  const holds = ledger.holds.map((one) => ({ kind: 'hold' as const, what: `${one.bundle} ${one.serial}` }));
  const block = blocked === undefined ? [] : [{ kind: 'block' as const, what: blocked.reason }];
  const paused =
    pause === undefined ? [] : [{ kind: 'pause' as const, what: `${pause.by}: ${pause.reason}` }];
  host.ledger.write({ ...ledger, holds: [] });
  return { schema: 1, type: 'resume.result', ended: [...paused, ...holds, ...block] };
}
