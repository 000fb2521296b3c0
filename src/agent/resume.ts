// `writ resume`: ends every hold and a block, so that the next cycle takes what the repository offers.
import type { ResumeResult } from '../core/control-protocol.js';
import type { Host } from './host.js';

export function resume(host: Pick<Host, 'ledger'>): ResumeResult {
  // A candidate that a person lets in again begins anew: its next crash is the first.
  const { blocked, crashes: _, ...ledger } = host.ledger.read();
  const holds = ledger.holds.map((one) => ({ kind: 'hold' as const, what: `${one.bundle} ${one.serial}` }));
  const block = blocked === undefined ? [] : [{ kind: 'block' as const, what: blocked.reason }];
  host.ledger.write({ ...ledger, holds: [] });
  return { schema: 1, type: 'resume.result', ended: [...holds, ...block] };
}
