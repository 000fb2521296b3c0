// `writ doctor`: examines everything that a host needs, and prints one line with the result and the next command for each.

import { isWritError, type WritError } from '../../../core/errors.js';
import { diagnose } from '../../../core/status/doctor.js';
import type { CommandDefinition } from '../../console/command.js';
import { agentService, type ConfigFlags, configFlag, withConfig } from '../../host/agent-requests.js';
import { releaseTimeOf } from '../../host/clock-hint.js';
import { agentModules } from '../../host/lazy-agent-modules.js';
import { readHostStatus } from '../../host/read-status.js';
import { showFindings } from '../../show/show-doctor.js';

export const command: CommandDefinition<ConfigFlags> = {
  examples: ['writ doctor', 'writ doctor --json'],
  exitCodes: ['0  all is well', '1  warnings', '2  failures'],
  quiet: 'nothing',
  flags: configFlag,
  run: async (_args, flags, context) => {
    const { at, version, clock } = context;
    const hostStatus = await readHostStatus(flags, context).catch(whyNot);
    const { runDoctor } = await agentModules.doctor();
    const service = agentService(context);
    const releasedAtMs = releaseTimeOf(context);
    const configPath = at(flags.config);
    const found = await runDoctor({ configPath, version, clock, releasedAtMs, hostStatus, service });
    const findings = found.map((finding) => withConfig(finding, flags));
    const { outcome, exitCode, failures, warnings } = diagnose(findings);
    return {
      outcome,
      exitCode,
      details: { failures, warnings, findings },
      lines: showFindings(findings),
    };
  },
};

function whyNot(why: unknown): { readonly kind: 'failed'; readonly why: WritError } {
  if (isWritError(why)) return { kind: 'failed', why };
  throw why;
}
