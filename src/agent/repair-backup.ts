// Makes a damaged backup whole: the generation that a rollback would go to, built anew under a number of its own and
// named in the ledger in the old one's place. `current` does not move, and nobody is told.
import { isWritError } from '../core/errors.js';
import { placeCandidate } from './candidate-move.js';
import { openStory } from './cycle-story.js';
import { examineGeneration } from './examine-generation.js';
import type { Host } from './host.js';
import type { Ledger } from './ledger.js';
import { noteLinks } from './noted-links.js';
import { unboundedPace } from './pace.js';
import { stageDamaged } from './repair.js';
import { failuresIn, keepRecords, partsOf, repairCandidate } from './repair-plan.js';
import { reserveGeneration } from './reserve-generation.js';
import { newCycleId } from './run-cycle.js';
import { openStagingArea } from './staging-area.js';

/**
 * The caller has the host for itself.
 * @returns the generation that is the backup now: the same one where only what is kept was damaged, or where it could
 *   not be made anew
 */
export async function repairBackup(
  host: Host,
  generation: number,
  { signal }: { readonly signal: AbortSignal },
): Promise<number> {
  const story = openStory({ cycle: newCycleId(), trigger: 'repair', clock: host.clock, firstStep: 'fetch' });
  const area = openStagingArea(host.paths, host.durable, story.cycle);
  try {
    const wanted = await examineGeneration(host, generation, {
      contents: 'digests',
      pace: unboundedPace(signal),
    });
    const parts = partsOf(host, wanted);
    const reserved = reserveGeneration(host);
    const staging = area.directory(String(reserved.generation));
    const options = { cycle: story.cycle, download: 'yes', signal } as const;
    const made = await stageDamaged({ host, story, options, staging, ...reserved }, parts);
    const [failure] = failuresIn(made.selections);
    if (failure !== undefined) {
      host.log.warn({ generation, failure }, 'a damaged backup could not be made anew');
      return generation;
    }
    const { candidate, records, replaced } = await repairCandidate(host, parts, made);
    keepRecords(host, records, staging);
    if (replaced.length === 0 && wanted.links.length === 0) return generation;
    await placeCandidate(host, candidate, { staging, generation: reserved.generation });
    const named = inPlaceOf(generation, reserved.generation, host.ledger.read());
    host.ledger.write(noteLinks(host.paths, named, reserved.generation));
    host.log.warn({ generation, by: reserved.generation }, 'a damaged backup was made anew');
    return reserved.generation;
  } catch (error) {
    if (!isWritError(error) || error.code === 'INTERRUPTED') throw error;
    host.log.warn({ err: error, generation }, 'a damaged backup could not be made anew');
    return generation;
  } finally {
    area.remove(host.log);
  }
}

/** Under each of the names that the old one has. */
function inPlaceOf(old: number, made: number, ledger: Ledger): Ledger {
  return {
    ...ledger,
    ...(ledger.previous === old ? { previous: made } : {}),
    ...(ledger.lastKnownGood === old ? { lastKnownGood: made } : {}),
  };
}
