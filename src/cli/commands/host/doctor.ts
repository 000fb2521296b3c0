// `writ doctor`: looks at everything that a host needs, says in one line each how it is, and what to do about it.

import { isWritError, type WritError } from '../../../core/errors.js';
import { diagnose } from '../../../core/status/doctor.js';
import type { StatusReport } from '../../../core/status/status.js';
import type { CommandContext, CommandDefinition } from '../../console/command.js';
import { agentDoors } from '../../host/agent-doors.js';
import { addConfigFlag, type ConfigFlags, withConfig } from '../../host/ask.js';
import { readStatus } from '../../host/read-status.js';
import { showFindings } from '../../show/show-doctor.js';

export const command: CommandDefinition<ConfigFlags> = {
  examples: ['writ doctor', 'writ doctor --json'],
  exitCodes: ['0  all is well', '1  warnings', '2  failures'],
  onSignal: 'end',
  configure: (command) => {
    addConfigFlag(command);
  },
  run: async (_args, flags, context) => {
    const { version, clock } = context;
    const configPath = flags.config;
    const status = await statusOrWhyNot(configPath, context);
    const found = await agentDoors.runDoctor({ configPath, version, clock, status });
    const findings = found.map((finding) => withConfig(finding, flags));
    const { outcome, exitCode, failures, warnings } = diagnose(findings);
    return {
      type: 'doctor.result',
      outcome,
      exitCode,
      details: { failures, warnings, findings },
      lines: showFindings(findings),
    };
  },
};

async function statusOrWhyNot(
  configPath: string,
  context: CommandContext,
): Promise<StatusReport | WritError> {
  try {
    return await readStatus(configPath, context);
  } catch (error) {
    if (!isWritError(error)) throw error;
    return error;
  }
}
