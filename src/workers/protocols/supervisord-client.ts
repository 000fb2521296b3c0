// Calls to supervisord over its unix socket, each with one deadline, and what its answers mean. An answer that is
// not exactly what such a call gives is a failure: an empty list means that nobody was there to be notified.

import { askHttp } from '../../platform/net/http-request.js';
import type { Clock } from '../../platform/time/clock.js';
import { readAuthorization } from '../../platform/users/authorization-file.js';
import type { ResetOptions } from '../contract/driver.js';
import { encodeXmlRpcCall, parseXmlRpcAnswer, type XmlRpcAnswer, type XmlRpcValue } from './xml-rpc.js';

/** Room for 1,024 processes with their paths and descriptions. */
const maxAnswerBytes = 4_000_000;

export interface SupervisordPlace {
  readonly socket: string;
  /** File with the value of the Authorization header. */
  readonly authorizationFile?: string | undefined;
  readonly clock: Clock;
}

export type SupervisordAnswer =
  | Exclude<XmlRpcAnswer, { readonly kind: 'malformed' }>
  /** `reason`: an errno name, or in words why there is no answer. */
  | { readonly kind: 'failed'; readonly reason: string };

/** @param method without its namespace, as `getProcessInfo`. Never throws for what supervisord does. */
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
  // Faults come with 200 too: any other status is not supervisord's word.
  if (reply.status !== 200) return { kind: 'failed', reason: `status ${reply.status}` };
  const answer = parseXmlRpcAnswer(reply.body);
  return answer.kind === 'malformed' ? { kind: 'failed', reason: 'it does not speak XML-RPC' } : answer;
}

/** @returns in words why this answer does not mean that a process was notified; undefined when it was */
export function failureOf(answer: SupervisordAnswer): string | undefined {
  if (answer.kind === 'failed') return answer.reason;
  if (answer.kind === 'fault') return answer.text;
  if (answer.value === true) return undefined;
  if (!Array.isArray(answer.value)) return 'an answer that says neither yes nor no';
  if (answer.value.length === 0) return 'an empty answer: no process was notified';
  return answer.value.map(whyEntryFailed).find((reason) => reason !== undefined);
}

const successStatus = 80;

function whyEntryFailed(entry: XmlRpcValue): string | undefined {
  const [status, description] = entry instanceof Map ? [entry.get('status'), entry.get('description')] : [];
  return status === successStatus ? undefined : `status ${String(status)} ${String(description)}`;
}

export interface SupervisedProcess {
  /** `GROUP:NAME`, as supervisord takes it. */
  readonly id: string;
  readonly group: string;
  readonly state: number;
  readonly pid: number;
  /** Epoch seconds. */
  readonly startedAt: number;
  /** Exit code of its last end; below 0 for a signal. */
  readonly exitStatus: number;
  /** Why it could not be started the last time; empty where it could. */
  readonly spawnError: string;
}

/** @returns the process that one struct of an answer describes; undefined when it describes none */
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
