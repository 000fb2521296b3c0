// `writ config show`: the configuration as the agent reads it, each value with its source.
import { loadConfig } from '../../../agent/config/load-config.js';
import { mistakeLine } from '../../../core/config/config-errors.js';
import { proxyUses } from '../../../core/proxy-rules.js';
import type { CommandDefinition } from '../../console/command.js';
import { type ConfigFlags, configFlag } from '../../host/agent-requests.js';
import { showConfig } from '../../show/show-config.js';

export const command: CommandDefinition<ConfigFlags> = {
  examples: ['writ config show', 'writ config show --config agent.yaml --json'],
  exitCodes: ['0  the configuration is valid', '2  it is not valid; every mistake is listed'],
  flags: configFlag,
  run: (_args, flags, { reporter, at, env }) => {
    const { config, given, tolerated, ...loaded } = loadConfig(at(flags.config));
    const warnings = [...tolerated, ...loaded.warnings];
    for (const warning of warnings) reporter.warn(`${flags.config}:${mistakeLine(warning)}`);
    const proxies = proxyUses(config, env);
    return Promise.resolve({
      outcome: 'valid',
      details: { file: flags.config, config, given, proxies, warnings },
      lines: showConfig(flags.config, { config, given, proxies }),
    });
  },
};
