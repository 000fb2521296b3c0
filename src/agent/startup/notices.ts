// Notices about state files that a start rebuilt. A notice is recorded in the ledger before its file is replaced, so that
// no crash can lose it. It is removed after the log and the history contain it, so that it is reported once.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { rebuiltProblem, recordEvent } from '../job/record.js';
import type { Host } from '../state/host.js';
import { type Ledger, ledgerSection } from '../state/ledger.js';

const changeNotices = ledgerSection('notices');

export interface RebuiltFile {
  readonly path: string;
  /** For operators: the damage of the file, and the data that are lost. */
  readonly text: string;
}

/** Records in the ledger that a file is about to be rebuilt. */
export function recordRebuiltFile(host: Pick<Host, 'ledger'>, rebuilt: RebuiltFile): void {
  host.ledger.write(withNotice(host.ledger.read(), rebuilt));
}

/** @returns the ledger with a notice about the rebuilt file; a notice with the same message is not added twice */
export function withNotice(ledger: Ledger, { path, text }: RebuiltFile): Ledger {
  const notice = rebuiltProblem(path, text);
  const others = (ledger.notices ?? []).filter((one) => one.message !== notice.message);
  return changeNotices(ledger, { notices: [...others, notice] });
}

/**
 * Writes the recorded notices to the log and the history, then removes them from the ledger.
 * @returns the notices; empty without any
 */
export function reportNotices(host: Host): readonly Problem[] {
  const { notices } = host.ledger.read();
  if (notices === undefined) return [];
  const reason = 'the state directory was repaired';
  recordEvent(host, { trigger: 'recovery', problems: [], warnings: notices, reason });
  host.ledger.write(changeNotices(host.ledger.read(), { notices: undefined }));
  return notices;
}
