// What a start found broken and made again, said once with its code: noted in the ledger before anything is replaced,
// so that no crash can lose it, and gone from there when it is in log and history.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { rebuiltProblem, recordEvent } from '../job/record.js';
import type { Host } from '../state/host.js';
import { type Ledger, ledgerSection } from '../state/ledger.js';

const changeNotices = ledgerSection('notices');

export interface Rebuilt {
  /** Of the file. */
  readonly path: string;
  /** What was wrong with it, and what is lost, for people. */
  readonly text: string;
}

/** Notes that a file is about to be made again. */
export function noteRebuilt(host: Pick<Host, 'ledger'>, rebuilt: Rebuilt): void {
  host.ledger.write(withNotice(host.ledger.read(), rebuilt));
}

/** As noteRebuilt, for a ledger that is not written yet; the same notice is kept once. */
export function withNotice(ledger: Ledger, { path, text }: Rebuilt): Ledger {
  const notice = rebuiltProblem(path, text);
  const others = (ledger.notices ?? []).filter((one) => one.message !== notice.message);
  return changeNotices(ledger, { notices: [...others, notice] });
}

/** @returns what was to be said; it is in log and history when this returns */
export function reportNotices(host: Host): readonly Problem[] {
  const { notices } = host.ledger.read();
  if (notices === undefined) return [];
  const reason = 'the state directory was repaired';
  recordEvent(host, { trigger: 'recovery', problems: [], warnings: notices, reason });
  host.ledger.write(changeNotices(host.ledger.read(), { notices: undefined }));
  return notices;
}
