// What a group that may look asks of an agent over its own socket: how the host is, and nothing that changes it. Owns the
// request parser, which knows no other word, and the answer to `health`; no socket is opened. Greeting, lines and bounds are
// those of the control protocol.
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
  /** Left out when nothing is active. */
  readonly generation?: number;
}

/** @throws WritError MESSAGE_MALFORMED for whatever would change something, or is not known */
export function parseReadRequest({ type }: SocketMessage): ReadRequest {
  const known = requests.find((one) => one === type);
  if (known !== undefined) return { type: known };
  throw new WritError('MESSAGE_MALFORMED', `this socket answers only ${requests.join(', ')}`, {
    facts: { expected: requests.join(' '), member: 'type' },
    hint: 'Ask on the control socket.',
  });
}

/** @returns the answer to `health` */
export function healthResult(report: StatusReport): HealthResult {
  const { host, agent, generation, atMs } = report;
  const known = generation === undefined ? {} : { generation };
  return { schema: 1, type: 'health.result', ...judgeHostHealth(report), host, agent, ...known, atMs };
}
