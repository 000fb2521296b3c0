// Records canaries that reached no process. Such a canary does not refuse a candidate, so it is reported as a warning of its cycle.
// If the group has running workers, the warning lasts until the canary reaches one. Owns `unheardCanaries` in the ledger.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { WritError } from '../../core/errors.js';
import type { Host } from '../state/host.js';
import { ledgerSection } from '../state/ledger.js';
import type { CanaryReport } from './run-canaries.js';

const changeSilentCanaries = ledgerSection('unheardCanaries');

/** Records which canaries reached a process. @returns CANARY_SILENT for each one that did not */
export function noteSilentCanaries(host: Pick<Host, 'ledger'>, reports: readonly CanaryReport[]): Problem[] {
  const ledger = host.ledger.read();
  const left = { ...ledger.unheardCanaries };
  const found: Problem[] = [];
  for (const { group, verdict } of reports) {
    delete left[group];
    if (verdict.kind !== 'unreachable') continue;
    const text = `${group}: its canary: ${verdict.reason}`;
    found.push(problemOf(new WritError('CANARY_SILENT', text, { facts: { group } })));
    // Not kept for a group without running workers, such as a daemon that is down at a first deploy.
    if (hasRunningMember(ledger, group)) left[group] = text;
  }
  const unheardCanaries = Object.keys(left).length === 0 ? undefined : left;
  if (JSON.stringify(unheardCanaries) !== JSON.stringify(ledger.unheardCanaries))
    host.ledger.write(changeSilentCanaries(ledger, { unheardCanaries }));
  return found;
}

function hasRunningMember({ workers }: ReturnType<Host['ledger']['read']>, group: string): boolean {
  return Object.entries(workers).some(
    ([key, { state, goneAtMs }]) =>
      key.startsWith(`${group}/`) &&
      goneAtMs === undefined &&
      (state === 'confirmed' || state === 'notified'),
  );
}
