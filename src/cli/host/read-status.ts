// The report of a host for the commands that show it: from the running agent, or from what lies on disk.

import { WritError } from '../../core/errors.js';
import type { StatusReport } from '../../core/protocol/control-protocol.js';
import type { CommandContext } from '../console/command.js';
import { agentDoors } from './agent-doors.js';
import { ask, isNotRunning } from './ask.js';

/** @throws WritError AGENT_UNREACHABLE for an agent that runs and does not answer; CONFIG_*, STATE_DAMAGED */
export async function readStatus(configPath: string, context: CommandContext): Promise<StatusReport> {
  try {
    const answer = await ask({ request: { type: 'status' }, configPath, context });
    if (answer.type === 'status.result') return answer;
    throw new WritError('MESSAGE_MALFORMED', `the agent answered ${answer.type} to status`);
  } catch (error) {
    if (!isNotRunning(error)) throw error;
    const { version, clock } = context;
    return agentDoors.readOfflineStatus({ configPath, version, nowMs: clock.nowMs() });
  }
}
