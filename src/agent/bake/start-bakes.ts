// The bake times of a start: releases that an upgrade left without any, boots without an orderly shutdown, and how the
// workers fared while no agent ran. Writes the ledger; restores nothing itself.
import { activeGenerationNumber } from '../generations/generations.js';
import { observeRuns } from '../runs/observe-runs.js';
import type { FailedRelease } from '../settled/bake-failure.js';
import { withAbruptBoot } from '../settled/bake-rules.js';
import { withBakes, withBakesAfterUpgrade } from '../settled/settled-ledger.js';
import type { Host } from '../state/host.js';
import { activeReleases, type BakeReport, judgeBakes, recordSettled } from './watch-bakes.js';

export interface StartOfBakes {
  readonly bootId: string;
  /** False where the agent before did not end in order, and no swap was cut short: that is judged by the crash rules. */
  readonly wasOrderly: boolean;
  /** Names of the groups that this start cannot observe, as judgeBakes has them. */
  readonly unseenGroups: readonly string[];
  /** Since the last start of the same command, which observes by its starts; left out: no time is observed. */
  readonly elapsedMs?: number | undefined;
  /** The takers of that start, as judgeBakes has them. */
  readonly takersBefore?: BakeReport['takers'] | undefined;
  /** Called with the takers of this start, for the next one of the same command. */
  readonly onTakers?: (takers: BakeReport['takers']) => void;
}

/** @returns the releases that have failed */
export async function startBakes(
  host: Host,
  { bootId, wasOrderly, unseenGroups, elapsedMs, takersBefore, onTakers }: StartOfBakes,
): Promise<readonly FailedRelease[]> {
  const generation = activeGenerationNumber(host.paths);
  if (generation === undefined) return [];
  const now = { nowMs: host.clock.nowMs(), bootId };
  const before = host.ledger.read();
  const upgraded = withBakesAfterUpgrade(before, activeReleases(host), {
    ...now,
    config: host.config,
    generation,
  });
  const booted = Object.entries(upgraded.bakes ?? {}).filter(
    ([, bake]) => !wasOrderly && bake.bootId !== bootId,
  );
  const ledger = withBakes(
    upgraded,
    booted.map(([bundle, bake]) => [bundle, withAbruptBoot(bake, now)] as const),
  );
  if (upgraded !== before || booted.length > 0) host.ledger.write(ledger);
  if (ledger.bakes === undefined) return [];
  // Where a timer starts the pulls, only the start of a pull observes the workers.
  const observed = await observeRuns(host, () => true);
  const isEachWritten = elapsedMs !== undefined;
  const seen = { observed, elapsedMs, takersBefore, unseenGroups };
  const report = judgeBakes(host, { ...seen, bootId, isEachWritten });
  onTakers?.(report.takers);
  recordSettled(host, report);
  return report.failed;
}
