// Calls supervisord over its Unix socket, each with one deadline, and parses its answers. An answer in an unexpected form is a failure,
// because an empty list would mean that there are no processes to notify.

import { askHttp } from '../../platform/net/http-request.js';
import type { Clock } from '../../platform/time/clock.js';
import { readAuthorization } from '../../platform/users/authorization-file.js';
import type { ResetOptions } from '../contract/driver.js';
import { encodeXmlRpcCall, parseXmlRpcAnswer, type XmlRpcAnswer, type XmlRpcValue } from './xml-rpc.js';

/** Enough for 1,024 processes with their paths and descriptions. */
const maxAnswerBytes = 4_000_000;

export interface SupervisordPlace {
  readonly socket: string;
  /** Path of a file with the value of the Authorization header. */
  readonly authorizationFile?: string | undefined;
  readonly clock: Clock;
}

export type SupervisordAnswer =
  | Exclude<XmlRpcAnswer, { readonly kind: 'malformed' }>
  /** `reason`: an errno name, or a text why there is no answer. */
  | { readonly kind: 'failed'; readonly reason: string };

/** Never throws because of supervisord. @param method without its namespace, as `getProcessInfo` */
export async function callSupervisord(
  place: SupervisordPlace,
  call: readonly [method: string, ...params: (string | boolean | number)[]],
  limits: Omit<ResetOptions, 'target'>,
): Promise<SupervisordAnswer> {
  const [method, ...params] = call;
  const authorization = readAuthorization(place.authorizationFile);
  if (authorization.kind === 'failed') return authorization;
  const reply = await askHttp({
    url: new URL('http://localhost/RPC2'),
    unixSocket: place.socket,
    method: 'POST',
    headers: { 'content-type': 'text/xml', ...authorization.headers },
    body: encodeXmlRpcCall(`supervisor.${method}`, params),
    maxAnswerBytes,
    clock: place.clock,
    ...limits,
  });
  if (reply.kind === 'failed') return reply;
  // Supervisord sends status 200 for faults too, so another status is from another program.
  if (reply.status !== 200) return { kind: 'failed', reason: `status ${reply.status}` };
  const answer = parseXmlRpcAnswer(reply.body);
  return answer.kind === 'malformed' ? { kind: 'failed', reason: 'it does not speak XML-RPC' } : answer;
}

/** @returns a text why the answer does not show a notified process; undefined if it does */
export function failureText(answer: SupervisordAnswer): string | undefined {
  if (answer.kind === 'failed') return answer.reason;
  if (answer.kind === 'fault') return answer.text;
  if (answer.value === true) return undefined;
  if (!Array.isArray(answer.value)) return 'an answer without a verdict on the process';
  if (answer.value.length === 0) return 'an empty answer: no process was notified';
  return answer.value.map(whyEntryFailed).find((reason) => reason !== undefined);
}

const successStatus = 80;

function whyEntryFailed(entry: XmlRpcValue): string | undefined {
  const [status, description] = entry instanceof Map ? [entry.get('status'), entry.get('description')] : [];
  return status === successStatus ? undefined : `status ${String(status)} ${String(description)}`;
}

export interface SupervisedProcess {
  /** `GROUP:NAME`, the form in calls of supervisord. */
  readonly id: string;
  readonly group: string;
  readonly state: number;
  readonly pid: number;
  /** Epoch seconds. */
  readonly startedAt: number;
  /** Exit code of the last run; negative for a signal. */
  readonly exitStatus: number;
  /** Why the last start failed; empty if it succeeded. */
  readonly spawnError: string;
}

/**
 * @returns the process in a struct of an answer: id GROUP:NAME, state (number of supervisord), startedAt in epoch seconds;
 *   missing numbers are 0. undefined without a name, group, state, statename or pid
 */
export function processOf(value: XmlRpcValue): SupervisedProcess | undefined {
  if (!(value instanceof Map)) return undefined;
  const [name, group, state, stateName, pid] = ['name', 'group', 'state', 'statename', 'pid'].map((key) =>
    value.get(key),
  );
  if (typeof name !== 'string' || typeof group !== 'string' || typeof stateName !== 'string')
    return undefined;
  if (typeof state !== 'number' || typeof pid !== 'number') return undefined;
  const [startedAt, spawnError, exitStatus] = ['start', 'spawnerr', 'exitstatus'].map((key) =>
    value.get(key),
  );
  return {
    id: `${group}:${name}`,
    group,
    state,
    pid,
    startedAt: typeof startedAt === 'number' ? startedAt : 0,
    exitStatus: typeof exitStatus === 'number' ? exitStatus : 0,
    spawnError: typeof spawnError === 'string' ? spawnError : '',
  };
}
