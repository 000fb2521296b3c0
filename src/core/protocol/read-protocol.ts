// The protocol of the agent's read-only socket, which a configured group of users may access: status and health of the host, and no
// request that changes it. Has the parser of requests and the response to `health`. Greeting, lines and bounds are those of the
// control protocol.
import { WritError } from '../errors.js';
import { type HostHealth, judgeHostHealth } from '../status/host-health.js';
import type { StatusReport } from '../status/status.js';
import type { SocketMessage } from './socket-protocol.js';

export type ReadRequest =
  | { readonly type: 'status' }
  | { readonly type: 'watch' }
  | { readonly type: 'health' };

const requests = ['status', 'watch', 'health'] as const;

export interface HealthResult extends HostHealth, Pick<StatusReport, 'host' | 'agent' | 'atMs'> {
  readonly schema: 1;
  readonly type: 'health.result';
  /** Undefined if no generation is active. */
  readonly generation?: number;
}

/**
 * @returns a request that changes nothing
 * @throws WritError MESSAGE_MALFORMED for any other request
 */
export function parseReadRequest({ type }: SocketMessage): ReadRequest {
  const known = requests.find((one) => one === type);
  if (known !== undefined) return { type: known };
  throw new WritError('MESSAGE_MALFORMED', `this socket answers only ${requests.join(', ')}`, {
    facts: { expected: requests.join(' '), member: 'type' },
    hint: 'Ask on the control socket.',
  });
}

/** @returns the response to `health` */
export function healthResult(report: StatusReport): HealthResult {
  const { host, agent, generation, atMs } = report;
  const known = generation === undefined ? {} : { generation };
  return { schema: 1, type: 'health.result', ...judgeHostHealth(report), host, agent, ...known, atMs };
}
