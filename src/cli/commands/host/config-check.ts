// `writ config check`: lists every mistake of a configuration. Also warns of faults with which a start succeeds: unknown
// placeholders, and programs and files that are missing on this host. Changes nothing.
import { requireOwnConfig } from '../../../agent/config/config-file.js';
import { checkConfig } from '../../../agent/config/load-config.js';
import { mistakeLine } from '../../../core/config/config-errors.js';
import type { CommandDefinition } from '../../console/command.js';
import { type ConfigFlags, configFlag } from '../../host/agent-requests.js';
import { counted } from '../../show/show-text.js';

export const command: CommandDefinition<ConfigFlags> = {
  examples: ['writ config check', 'writ config check agent.yaml'],
  exitCodes: ['0  no mistake; warnings are listed', '2  mistakes; each is listed with its line and column'],
  args: [['[file]', 'a configuration file; default: that of --config']],
  flags: configFlag,
  run: ([named], flags, { reporter, at }) => {
    const file = named ?? flags.config;
    const { warnings } = checkConfig(at(file));
    // A file that is named as an argument may be anywhere, because it may be a draft.
    if (named === undefined) requireOwnConfig(at(file));
    for (const warning of warnings) reporter.warn(`${file}:${mistakeLine(warning)}`);
    const also = warnings.length === 0 ? '' : `, ${counted(warnings.length, 'warning')}`;
    return Promise.resolve({
      outcome: 'valid',
      details: { file, warnings },
      lines: [`VALID ${file}: no mistake${also}`],
    });
  },
};
