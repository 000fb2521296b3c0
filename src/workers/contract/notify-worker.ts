// Notifies one worker and holds its driver to what it may claim: the one way in which the agent asks a driver.
// A worker that answered and then died uses no generation, whatever it said. Never decides an outcome.
import { unreachable } from './answer.js';
import type { Answer, Driver, ResetOptions } from './driver.js';
import { deadAnswerText } from './liveness.js';

export type NotifyVerb = 'reset' | 'restart';

/**
 * @param verb `restart` falls back to `reset` where the driver has no such verb: the worker must be notified in any case
 * @returns `confirmed` only from a driver whose answers prove something, and never for a worker that is dead
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
    : honest(driver, await driver.reset(worker, reset));
  if (answer.kind !== 'confirmed' && answer.kind !== 'notified') return answer;
  const liveness = await driver.liveness?.(worker);
  return liveness === 'dead' ? unreachable(await deadAnswerText(driver, worker, answer.text)) : answer;
}

/** A driver whose answers prove nothing cannot confirm, whatever its file says. */
function honest(driver: Driver, answer: Answer): Answer {
  return answer.kind === 'confirmed' && driver.verdictClass !== 'true'
    ? { ...answer, kind: 'notified' }
    : answer;
}

/** A process that is up again has read something; what it read, nobody has said. */
function asNotified(answer: Answer = unreachable('no answer')): Answer {
  return answer.kind === 'confirmed' ? { ...answer, kind: 'notified' } : answer;
}
