// Notifies one worker and holds its driver to what it may claim: the one way in which the agent asks a driver.
// A worker that answered and then died uses no generation, whatever it said. Never decides an outcome.
import { unreachable } from './answer.js';
import type { Answer, Driver, ResetOptions } from './driver.js';

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

/** @returns the text of a worker that answered and counts as dead afterwards */
export async function deadAnswerText(driver: Driver, worker: string, text: string): Promise<string> {
  const why = await findDeathHint(driver, worker);
  return why === undefined ? `answered, then died: ${text}` : deadText(why, text);
}

/** @returns the text of a worker that answered, though a missing file makes it count as dead */
export function deadText(why: string, text: string): string {
  return `counts as dead: ${why}; its answer was: ${text}`;
}

/** @returns why a worker counts as dead, where the configuration may be the cause, as a pid file that does not exist */
export async function findDeathHint(
  driver: Pick<Driver, 'process'>,
  worker: string,
): Promise<string | undefined> {
  const daemon = await driver.process?.(worker);
  if (daemon?.kind !== 'dead' || daemon.hint === undefined) return undefined;
  return `${daemon.reason}: ${daemon.hint}`;
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
