// Active releases that the publisher has withdrawn, and why this host still uses them. Reads the facts of a status and the trusted
// metadata of the repository.
import type { CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { isNowActive } from '../../core/cycle/sync-machine.js';
import { orUndefined, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { withdraws } from '../../core/release/withdrawn.js';
import { pauseNow } from '../select/why-not-now-rules.js';
import type { Facts } from './status-facts.js';

/** @returns ACTIVE_WITHDRAWN for each; `facts.why` is the reason why the host still uses the release, left out if unknown */
export function withdrawnProblems(facts: Facts, last: CycleResult | undefined): Problem[] {
  const { host, active } = facts;
  return host.config.bundles.flatMap(({ name, channel }) => {
    const release = active?.records.get(name)?.release;
    const offered = orUndefined(() => host.client.knownTarget(name, channel))?.release;
    if (release === undefined || offered === undefined || !withdraws(offered, release)) return [];
    const { serial } = release;
    const why = whyNotLeft(facts, offered, last);
    const text = `${name} ${serial} is active, and its publisher has withdrawn it (offered in its place: ${name} ${offered.serial})`;
    const message = why === undefined ? text : `${text}; ${why}`;
    const known = { bundle: name, serial, offered: offered.serial, ...given({ why }) };
    return [problemOf(new WritError('ACTIVE_WITHDRAWN', message, { facts: known }))];
  });
}

/** @returns the reason as a text; undefined before a cycle has tried the offered release */
function whyNotLeft(
  { ledger, nowMs }: Facts,
  { bundle, serial }: ReleaseInfo,
  last: CycleResult | undefined,
): string | undefined {
  if (pauseNow(ledger, nowMs) !== undefined) return 'this host is paused';
  if (ledger.blocked !== undefined) return 'activation is blocked';
  const result = last?.bundles.find((one) => one.bundle === bundle && one.toSerial === serial);
  const { problem } = result !== undefined && !isNowActive(result) ? result : {};
  return problem && `${bundle} ${serial} was not taken (${problem.code})`;
}
