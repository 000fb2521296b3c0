// `untrusted: rollback`: when the current keys no longer verify an active release, moves to the newest retained generation that
// they verify. Without one the policy stays, because no policy may be worse. The alarm stays in both cases.
import { isWritError } from '../../core/errors.js';
import { readActivePolicy } from '../generations/generation-contents.js';
import { chooseRollbackTarget } from '../generations/rollback-target.js';
import { isPaused } from '../select/pause.js';
import type { Host } from '../state/host.js';
import type { PolicyExit } from './policy-exit.js';
import { rollBack } from './rollback.js';

/** @returns an exit that leaves each generation at most once, so that a refused target is not tried at each poll */
export function createUntrustedExit(): PolicyExit {
  let triedToLeave: number | undefined;
  return {
    alarm: 'UNTRUSTED_ACTIVE',
    afterCycle: async (host, { result }, signal) => {
      const alarm = result.problems.find((one) => one.code === 'UNTRUSTED_ACTIVE');
      if (alarm === undefined || host.config.untrusted === 'keep' || signal.aborted) return undefined;
      // A pause prevents the move; the alarm is reported, and the operator decides.
      if (isPaused(host)) return undefined;
      if (result.generation === triedToLeave) return undefined;
      triedToLeave = result.generation;
      const generation = await findTrustedGeneration(host);
      if (generation === undefined) return undefined;
      const reason = alarm.message.slice(0, 200);
      return rollBack(host, { generation, by: 'writ', reason, signal, onEvent: () => undefined });
    },
  };
}

async function findTrustedGeneration(host: Host): Promise<number | undefined> {
  try {
    return (await chooseRollbackTarget(host, readActivePolicy(host.paths), { force: 'no' })).generation
      .number;
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.error({ err: error }, 'an untrusted release is active, and no kept generation can replace it');
    return undefined;
  }
}
