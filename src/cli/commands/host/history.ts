// `writ history`: show what the cycles of this host did, newest first; with --cycle every line of one cycle.

import { WritError } from '../../../core/errors.js';
import {
  type ControlAnswer,
  type HistoryEntry,
  maxHistoryEntries,
} from '../../../core/protocol/control-protocol.js';
import type { CommandContext, CommandDefinition } from '../../console/command.js';
import { numberFlag } from '../../console/flag-values.js';
import { type FlagValues, optional, preset } from '../../console/flags.js';
import { configFlag, requestOrRun, withConfig } from '../../host/agent-requests.js';
import { agentModules } from '../../host/lazy-agent-modules.js';
import { showCycle, showHistory } from '../../show/show-history.js';

const flags = {
  ...configFlag,
  limit: preset(
    '-n, --limit <count>',
    'how many, the newest; of lines without --json',
    20,
    numberFlag(1, maxHistoryEntries),
  ),
  cycle: optional('--cycle <id>', 'everything about one cycle, for example c-7f20'),
};
type HistoryFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<HistoryFlags> = {
  examples: ['writ history -n 3', 'writ history --cycle c-7f20'],
  exitCodes: ['0  answered', '1  no answer', '2  usage or configuration, or no such cycle'],
  flags,
  run: async (_args, flags, context) => {
    const entries = await readHistory(flags, context);
    const [entry] = entries;
    if (flags.cycle !== undefined && entry === undefined) {
      throw new WritError('USAGE', `the history has no cycle ${flags.cycle}`, { hint: 'Run writ history.' });
    }
    const { limit } = flags;
    const block =
      flags.cycle === undefined || entry === undefined ? showHistory(entries, limit) : showCycle(entry);
    const outcome = entries.length === 0 ? 'empty' : 'found';
    return withConfig({ outcome, details: { entries: entries.slice(0, limit) }, ...block }, flags);
  },
};

function readHistory(flags: HistoryFlags, context: CommandContext): Promise<readonly HistoryEntry[]> {
  const { cycle } = flags;
  // Request more entries than lines, because equal failures in a row are one line.
  const wanted = cycle === undefined ? { limit: maxHistoryEntries } : { limit: 1, cycle };
  const entries: HistoryEntry[] = [];
  const onMessage = (message: ControlAnswer): void => {
    if (message.type === 'history.entry') entries.push(message);
  };
  const question = { request: { type: 'history', ...wanted }, flags, context, onMessage } as const;
  return requestOrRun<readonly HistoryEntry[]>(
    question,
    () => entries,
    async (options) => (await agentModules.fromDisk()).readOfflineHistory({ ...options, ...wanted }),
  );
}
