// Commands of a soak over an agent's socket: the request of a command line, the response, and its summary in the event log.

import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import type { ControlAnswer, ControlRequest } from '../../../src/core/protocol/control-protocol.js';
import { writVersion } from '../../../src/core/version.js';
import { askAgent } from '../../../src/platform/net/control-client.js';
import { systemClock } from '../../../src/platform/time/clock.js';

export interface CommandRun {
  readonly exitCode: number | null;
  readonly json: Record<string, unknown> | undefined;
  readonly durationMs: number;
}

export function requestOf(args: readonly string[]): ControlRequest {
  const [type] = args;
  const by = 'soak';
  if (type === 'pull') return { type, by, force: args.includes('--force') };
  if (type === 'rollback') return { type, by, reason: 'soak' };
  if (type === 'resume') return { type, by };
  if (type === 'verify') return { type, by, repair: args.includes('--repair') } as unknown as ControlRequest;
  return { type: 'status' };
}

export async function askOnce(
  socketPath: string,
  request: ControlRequest,
  timeoutMs: number,
): Promise<ControlAnswer> {
  let last: ControlAnswer | undefined;
  const answers = askAgent({
    socketPath,
    // The agent has the same user as this process.
    state: '/nonexistent',
    request,
    version: writVersion,
    clock: systemClock,
    silenceMs: timeoutMs,
    commandLine: `writ ${request.type}`,
    onOtherVersion: () => undefined,
    signal: AbortSignal.timeout(timeoutMs),
  });
  for await (const answer of answers) last = answer;
  if (last === undefined) throw new Error('the agent sent no response');
  return last;
}

export function parseJson(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

export function summary(json: Record<string, unknown> | undefined): string {
  if (json === undefined) return 'without a response';
  const { outcome, code, problems, bundles, generation } = json as Partial<CycleResult> & { code?: string };
  const codes = [...(problems ?? []).map((one) => one.code), ...(code === undefined ? [] : [code])];
  const serials = (bundles ?? []).map?.(
    (one) => `${one.bundle} ${one.fromSerial ?? '-'}>${one.toSerial ?? '-'} ${one.outcome}`,
  );
  return [outcome, generation === undefined ? '' : `generation ${generation}`, ...(serials ?? []), ...codes]
    .filter((part) => part !== '' && part !== undefined)
    .join(', ');
}
