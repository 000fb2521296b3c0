// Notifies one worker through its driver, and limits the answer to what the driver can know. Every notification of the agent
// uses it. A worker that answered and then died uses no generation. Does not decide an outcome.
import { unreachable } from './answer.js';
import type { Answer, Driver, ResetOptions } from './driver.js';
import { deadAnswerText } from './liveness.js';

export type NotifyVerb = 'reset' | 'restart';

/**
 * @param verb `restart` falls back to `reset` if the driver has no such verb, because the worker must be notified in any case
 * @returns `confirmed` only from a driver of class `true`, and never for a dead worker
 */
export async function notifyWorker(
  driver: Driver,
  worker: string,
  options: ResetOptions & { readonly verb?: NotifyVerb },
): Promise<Answer> {
  const { verb = 'reset', ...reset } = options;
  const restarts = verb === 'restart' && driver.restart !== undefined;
  const answer = restarts
    ? asNotified(await driver.restart?.(worker, reset))
    : limitToClass(driver, await driver.reset(worker, reset));
  if (answer.kind !== 'confirmed' && answer.kind !== 'notified') return answer;
  const liveness = await driver.liveness?.(worker);
  return liveness === 'dead' ? unreachable(await deadAnswerText(driver, worker, answer.text)) : answer;
}

/** Only a driver of class `true` can confirm, whatever its answer claims. */
function limitToClass(driver: Driver, answer: Answer): Answer {
  return answer.kind === 'confirmed' && driver.verdictClass !== 'true'
    ? { ...answer, kind: 'notified' }
    : answer;
}

/** A restarted process has read a generation, and it is unknown which one. */
function asNotified(answer: Answer = unreachable('no answer')): Answer {
  return answer.kind === 'confirmed' ? { ...answer, kind: 'notified' } : answer;
}
