// `untrusted: rollback`: leaves an active release that keys of today no longer vouch for, to the newest kept generation
// that still verifies. With none such the policy stays, for no policy at all may be worse; the alarm stays in any case.
import { isWritError } from '../../core/errors.js';
import { readActivePolicy } from '../generations/generation-contents.js';
import { chooseTarget } from '../generations/rollback-target.js';
import { isPaused } from '../select/pause.js';
import type { Host } from '../state/host.js';
import type { PolicyExit } from './policy-exit.js';
import { rollBack } from './rollback.js';

/** @returns an exit that tries each generation once: workers that refuse the way back are not asked at every poll */
export function createUntrustedExit(): PolicyExit {
  let triedToLeave: number | undefined;
  return {
    alarm: 'UNTRUSTED_ACTIVE',
    afterCycle: async (host, { result }, signal) => {
      const alarm = result.problems.find((one) => one.code === 'UNTRUSTED_ACTIVE');
      if (alarm === undefined || host.config.untrusted === 'keep' || signal.aborted) return undefined;
      // A pause leaves the workers alone; the alarm is said, and what is to be done about it is a person's.
      if (isPaused(host)) return undefined;
      if (result.generation === triedToLeave) return undefined;
      triedToLeave = result.generation;
      const generation = await whereTo(host);
      if (generation === undefined) return undefined;
      const reason = alarm.message.slice(0, 200);
      return rollBack(host, { generation, by: 'writ', reason, signal, onEvent: () => undefined });
    },
  };
}

async function whereTo(host: Host): Promise<number | undefined> {
  try {
    return (await chooseTarget(host, readActivePolicy(host.paths), { force: 'no' })).generation.number;
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.error({ err: error }, 'an untrusted release is active, and no kept generation can replace it');
    return undefined;
  }
}
