// The canaries that reached nobody. That keeps no candidate back, so a person must see it: each is a warning of its cycle,
// and stands until it is heard where workers were there to be asked. Owns that member of the ledger; asks nobody.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { WritError } from '../../core/errors.js';
import type { Host } from '../state/host.js';
import { ledgerSection } from '../state/ledger.js';
import type { CanaryReport } from './run-canaries.js';

const changeUnheard = ledgerSection('unheardCanaries');

/** Notes who was heard and who was not. @returns CANARY_SILENT for each that reached nobody */
export function noteUnheard(host: Pick<Host, 'ledger'>, reports: readonly CanaryReport[]): Problem[] {
  const ledger = host.ledger.read();
  const left = { ...ledger.unheardCanaries };
  const found: Problem[] = [];
  for (const { group, verdict } of reports) {
    delete left[group];
    if (verdict.kind !== 'unreachable') continue;
    const text = `${group}: its canary: ${verdict.reason}`;
    found.push(problemOf(new WritError('CANARY_SILENT', text, { facts: { group } })));
    // A daemon that is down at its first deploy is no news tomorrow.
    if (isSomebodyThere(ledger, group)) left[group] = text;
  }
  const unheardCanaries = Object.keys(left).length === 0 ? undefined : left;
  if (JSON.stringify(unheardCanaries) !== JSON.stringify(ledger.unheardCanaries))
    host.ledger.write(changeUnheard(ledger, { unheardCanaries }));
  return found;
}

function isSomebodyThere({ workers }: ReturnType<Host['ledger']['read']>, group: string): boolean {
  return Object.entries(workers).some(
    ([key, { state, goneAtMs }]) =>
      key.startsWith(`${group}/`) &&
      goneAtMs === undefined &&
      (state === 'confirmed' || state === 'notified'),
  );
}
