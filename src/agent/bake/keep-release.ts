// `writ pull --force --no-bake`: a person keeps the active releases on purpose. They settle at once, by that person, and the
// history has a line of it.

import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { isActivation } from '../../core/cycle/sync-machine.js';
import { describeCaller } from '../../core/names.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { newCycleId } from '../job/progress.js';
import { recordEvent } from '../job/record.js';
import { withSettled } from '../settled/settled-ledger.js';
import type { Host } from '../state/host.js';
import { activeReleases } from './watch-bakes.js';

/**
 * Settles the active releases that are in their bake time, with evidence of failure or without. Nothing settles after
 * a pull that brought something else than was asked for.
 * @param by the operator, as the history names the caller
 * @throws WritError DISK_*
 */
export function keepActive(host: Host, { outcome }: Pick<CycleResult, 'outcome'>, by: string): void {
  const { ledger, config, paths, clock } = host;
  const generation = activeGenerationNumber(paths);
  const { bakes = {} } = ledger.read();
  const baking = Object.entries(bakes);
  if (generation === undefined || baking.length === 0) return;
  if (!isActivation(outcome) && outcome !== 'unchanged') return;
  const settling = {
    active: activeReleases(host),
    config,
    generation,
    nowMs: clock.nowMs(),
    isObserved: () => false,
  };
  const names = baking.map(([bundle]) => bundle);
  ledger.write(withSettled(ledger.read(), names, settling));
  const kept = baking.map(([bundle, { serial }]) => `${bundle} ${serial}`).join(', ');
  const reason = `kept without a bake time by ${describeCaller(by)}: ${kept}`;
  recordEvent(host, { cycle: newCycleId(), trigger: 'force', reason, problems: [], by });
}
