// Notifies processes under supervisord by a signal, or by a stop and a start, over XML-RPC on its Unix socket. Supervisord does not know
// what a process read, so that nothing confirms. Always starts a process again that it stopped itself, as long as supervisord
// answers.
import type { NotNowConfig } from '../../core/config/config.js';
import { notNowOfText } from '../../core/config/not-now-keys.js';
import { WritError } from '../../core/errors.js';
import { requireSocketPath } from '../../platform/net/unix-socket.js';
import { notified, notNow, refused, unlisted, unreachable } from '../contract/answer.js';
import type {
  Answer,
  Driver,
  DriverContext,
  Liveness,
  ResetOptions,
  SupervisorFailure,
} from '../contract/driver.js';
import { supervisedEndsSince } from '../protocols/supervised-ends.js';
import {
  callSupervisord,
  failureText,
  processOf,
  type SupervisedProcess,
  type SupervisordAnswer,
  type SupervisordPlace,
} from '../protocols/supervisord-client.js';
import {
  absoluteFile,
  authorizationFile,
  driverKind,
  harmlessSignal,
  type OptionsOf,
  property,
  text,
} from '../shared/driver-options.js';
import { type DeferralRule, deferralRule } from '../shared/not-now.js';

const processName = '[A-Za-z0-9_.@-]{1,64}';

const properties = {
  supervisord: absoluteFile("the absolute path of supervisord's unix socket, as /run/supervisor.sock", 107),
  group: text('the name of a process group of supervisord, as web', { pattern: `^${processName}$` }),
  processes: property<readonly string[]>({
    type: 'array',
    minItems: 1,
    maxItems: 256,
    items: text('a process of supervisord, as web:web_0', { pattern: `^${processName}(:${processName})?$` }),
    description: 'a list of 1 to 256 processes, as [web:web_0]',
  }),
  signal: harmlessSignal,
  authorizationFile,
  notNow: property<NotNowConfig>(notNowOfText),
};

type SupervisordOptions = OptionsOf<typeof properties, 'supervisord'>;

export const supervisord = driverKind({
  name: 'supervisord',
  properties,
  knowsProcess: true,
  create: createDriver,
});

function createDriver(options: SupervisordOptions, { clock }: DriverContext): Driver {
  const { supervisord: socket, authorizationFile, signal, processes } = options;
  requireSocketPath(socket);
  if ((options.group === undefined) === (processes === undefined))
    throw new WritError('CONFIG_INVALID', 'reset: supervisord needs either `group` or `processes`');
  const place = { socket, clock, authorizationFile, busy: deferralRule(options.notNow) };
  const restart = (worker: string, reset: ResetOptions): Promise<Answer> => restartOne(place, worker, reset);
  return {
    verdictClass: signal === undefined ? 'early' : 'silent',
    members: async () =>
      processes === undefined ? groupMembers(place, options.group ?? '') : [...processes].sort(),
    reset: signal === undefined ? restart : (worker, reset) => signalOne(place, worker, signal, reset),
    restart,
    liveness: (worker) => livenessOf(place, worker),
    failure: (worker) => failureOfProcess(place, worker),
    endsSince: async (worker, mark) => {
      const process = await infoOf(place, worker);
      return process === undefined ? undefined : supervisedEndsSince(place, process, { mark, signal });
    },
    pid: async (worker) => (await infoOf(place, worker))?.pid || undefined,
    // Absent if a reset restarts, because each notification would create a process that was never notified.
    identity: signal && ((worker) => identityOf(place, worker)),
  };
}

interface Place extends SupervisordPlace {
  readonly busy: DeferralRule;
}

/** @param reason of supervisord; the user may have configured its text as a deferral */
function failureAnswer({ socket, busy }: Place, worker: string, reason: string): Answer {
  const text = `${socket}: ${worker}: ${reason}`;
  return busy.forText(reason) ? notNow(text) : unreachable(text);
}

/** Timeout of calls without a deadline of the caller. */
const askTimeoutMs = 5000;
const maxProcesses = 1024;

async function groupMembers(place: SupervisordPlace, group: string): Promise<readonly string[]> {
  const answer = await callSupervisord(place, ['getAllProcessInfo'], { timeoutMs: askTimeoutMs });
  // Supervisord does not run yet. After a crash its socket remains, and the error is ECONNREFUSED.
  if (answer.kind === 'failed' && answer.reason === 'ENOENT') return [];
  const found =
    answer.kind === 'value' && Array.isArray(answer.value) ? answer.value.map(processOf) : undefined;
  if (found === undefined || found.includes(undefined))
    throw noMembers(place, failureText(answer) ?? 'an answer that lists no processes');
  const members = found.filter((one) => one?.group === group).map((one) => one?.id ?? '');
  if (members.length === 0) throw noMembers(place, `it has no group ${group}`);
  if (members.length > maxProcesses)
    throw noMembers(place, `more than ${maxProcesses} processes in ${group}`);
  return members.sort();
}

function noMembers({ socket }: SupervisordPlace, reason: string): WritError {
  return unlisted(`${socket}: ${reason}`, { socket, reason });
}

async function signalOne(
  place: Place,
  worker: string,
  signal: string,
  { target: _, ...limits }: ResetOptions,
): Promise<Answer> {
  const { reason: notUp, leftMs } = await waitUntilUp(place, worker, limits);
  if (notUp !== undefined) return failureAnswer(place, worker, notUp);
  const call = { ...limits, timeoutMs: leftMs };
  const answer = await callSupervisord(place, ['signalProcess', worker, signal], call);
  const reason = failureText(answer);
  if (reason === undefined) return notified(`SIG${signal} sent to ${worker}`);
  const isStopped =
    isFault(answer, faults.notRunning) && (await infoOf(place, worker))?.state === stoppedState;
  return isStopped
    ? unreachable(`${worker} is STOPPED: a person stopped it, or it was never started (NOT_RUNNING)`)
    : failureAnswer(place, worker, reason);
}

/**
 * Waits until a started process can handle the signal; otherwise it would exit, and four such exits make it FATAL.
 * @returns the rest of the timeout, and the reason if the process must not be signalled
 */
async function waitUntilUp(
  place: SupervisordPlace,
  worker: string,
  { timeoutMs, signal }: Omit<ResetOptions, 'target'>,
): Promise<{ readonly leftMs: number; readonly reason?: string | undefined }> {
  const endMs = place.clock.monotonicMs() + timeoutMs;
  let wasStarting = false;
  for (let leftMs = timeoutMs; leftMs > 0 && !signal?.aborted; ) {
    const answer = await callSupervisord(place, ['getProcessInfo', worker], { timeoutMs: leftMs });
    leftMs = endMs - place.clock.monotonicMs();
    // The last call may be cut off by the rest of the timeout, which is not a failure.
    if (answer.kind === 'failed' && wasStarting && leftMs < pollMs) break;
    if (answer.kind === 'failed') return { leftMs, reason: failureText(answer) };
    const process = answer.kind === 'value' ? processOf(answer.value) : undefined;
    wasStarting = process?.state === startingState;
    if (!wasStarting && leftMs > 0) return { leftMs };
    await place.clock.sleep(Math.max(0, Math.min(pollMs, leftMs)), signal);
    leftMs = endMs - place.clock.monotonicMs();
  }
  return { leftMs: 0, reason: 'it is STARTING still, and a signal may end it' };
}

const faults = { abnormalTermination: 40, spawnError: 50, alreadyStarted: 60, notRunning: 70 } as const;

/**
 * Stops and starts a process, because supervisord has no restart. After the stop, neither an abort nor a deadline prevents the start:
 * supervisord itself does not start a process again that was stopped by a call.
 */
async function restartOne(place: Place, worker: string, reset: ResetOptions): Promise<Answer> {
  const { timeoutMs } = reset;
  const no = (reason: string): Answer => unreachable(`${place.socket}: ${worker}: ${reason}`);
  if (reset.signal?.aborted) return no('aborted');
  const stopped = await callSupervisord(place, ['stopProcess', worker, true], { timeoutMs });
  const failure = await whyNotStopped(place, worker, stopped);
  // Return only before the stop. A stopped process must be started again.
  if (failure !== undefined) return failureAnswer(place, worker, failure);
  const started = await callSupervisord(place, ['startProcess', worker, true], { timeoutMs });
  const failed = isFault(started, faults.spawnError) || isFault(started, faults.abnormalTermination);
  const outcome = failed ? await settledStart(place, worker, timeoutMs) : 'unknown';
  if (outcome === 'ended') return refused(`${worker} ended while it started`);
  const isUp = outcome === 'up' || isFault(started, faults.alreadyStarted);
  const reason = isUp ? undefined : failureText(started);
  return reason === undefined
    ? notified(`${worker} stopped and started`)
    : no(`it was stopped, and: ${reason}`);
}

/**
 * Decides whether a process refused, because it ended during its start. Supervisord 4 has the same fault for a process that it could
 * not execute, distinguishes the two only by a text, and removes the text while it retries.
 */
async function settledStart(
  place: SupervisordPlace,
  worker: string,
  timeoutMs: number,
): Promise<'up' | 'ended' | 'unknown'> {
  const endMs = place.clock.monotonicMs() + timeoutMs;
  let hasEnded = false;
  for (;;) {
    const process = await infoOf(place, worker);
    if (process === undefined) return hasEnded ? 'ended' : 'unknown';
    if (process.state === runningState) return 'up';
    hasEnded ||= process.spawnError.startsWith('Exited too quickly');
    const triesAgain = process.state === startingState || process.state === backoffState;
    if (!triesAgain || place.clock.monotonicMs() >= endMs) return hasEnded ? 'ended' : 'unknown';
    await place.clock.sleep(pollMs);
  }
}

function isFault(answer: SupervisordAnswer, code: number): boolean {
  return answer.kind === 'fault' && answer.code === code;
}

/** Longer than supervisord waits by default before it kills a process that does not exit. */
const stopGraceMs = 15_000;
const pollMs = 200;

async function whyNotStopped(
  place: SupervisordPlace,
  worker: string,
  answer: SupervisordAnswer,
): Promise<string | undefined> {
  const reason = isFault(answer, faults.notRunning) ? undefined : failureText(answer);
  if (reason === undefined || answer.kind !== 'failed' || !reason.startsWith('no answer')) return reason;
  const endMs = place.clock.monotonicMs() + stopGraceMs;
  while (place.clock.monotonicMs() < endMs) {
    const process = await infoOf(place, worker);
    if (process !== undefined && stoppedStates.has(process.state)) return undefined;
    await place.clock.sleep(pollMs);
  }
  return `it does not stop: ${reason}`;
}

async function infoOf(place: SupervisordPlace, worker: string): Promise<SupervisedProcess | undefined> {
  const answer = await callSupervisord(place, ['getProcessInfo', worker], { timeoutMs: askTimeoutMs });
  return answer.kind === 'value' ? processOf(answer.value) : undefined;
}

/** The state after `supervisorctl stop`, or before the first start. */
const stoppedState = 0;
const startingState = 10;
const runningState = 20;
/** STOPPED, EXITED, FATAL. */
const stoppedStates: ReadonlySet<number> = new Set([stoppedState, 100, 200]);
const backoffState = 30;
const exitedState = 100;
const fatalState = 200;

/** Trusts the state RUNNING: supervisord is the parent and reaps its children, so it is not a zombie. */
async function livenessOf(place: SupervisordPlace, worker: string): Promise<Liveness> {
  const process = await infoOf(place, worker);
  if (process === undefined) return 'unknown';
  if (process.state === runningState && process.pid > 0) return 'alive';
  return stoppedStates.has(process.state) || process.state === backoffState ? 'dead' : 'unknown';
}

/** Failures are FATAL, BACKOFF, and an exit with an error. STOPPED is requested. */
async function failureOfProcess(
  place: SupervisordPlace,
  worker: string,
): Promise<SupervisorFailure | undefined> {
  const process = await infoOf(place, worker);
  if (process === undefined) return undefined;
  const { state, spawnError, exitStatus } = process;
  const command = `supervisorctl start ${worker}`;
  const why = spawnError === '' ? '' : `: ${spawnError}`;
  if (state === fatalState)
    return { hasGivenUp: 'yes', text: `${worker} is FATAL: its startretries are used up${why}`, command };
  if (state === backoffState) return { hasGivenUp: 'no', text: `${worker} is in BACKOFF${why}`, command };
  if (state !== exitedState || exitStatus === 0) return undefined;
  return { hasGivenUp: 'yes', text: `${worker} has EXITED with ${exitStatus}`, command };
}

async function identityOf(place: SupervisordPlace, worker: string): Promise<string | undefined> {
  const process = await infoOf(place, worker);
  return process === undefined ? undefined : `${process.pid}@${process.startedAt}`;
}
