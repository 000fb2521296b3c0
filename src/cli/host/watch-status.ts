// Follows the status of a host: what the running agent sends, or, when none runs, what status.json is replaced by until
// one does. Owns whom to listen to and what is news; how a report looks is show-status'.
import { statSync } from 'node:fs';
import { agentPlaces } from '../../agent/config/config-file.js';
import { hostPaths } from '../../agent/state/paths.js';
import { isWritError } from '../../core/errors.js';
import type { StatusReport } from '../../core/protocol/control-protocol.js';
import { statusNews } from '../../core/status/status-news.js';
import type { CommandContext } from '../console/command.js';
import { agentDoors } from './agent-doors.js';
import { aloneOptions, ask, type ConfigFlags, isNotRunning } from './ask.js';

export interface WatchOptions {
  readonly flags: ConfigFlags;
  readonly context: CommandContext;
  /** `news` is missing where only ages have grown. */
  readonly onReport: (report: StatusReport, what: 'news' | 'ages') => void;
}

/** How often the file is looked at when no agent runs. */
const lookEveryMs = 1000;

/**
 * @returns `ended` when the agent that was watched has ended, `interrupted` after a signal
 * @throws WritError as ask does, but for an agent that does not run
 */
export async function watchStatus(options: WatchOptions): Promise<'ended' | 'interrupted'> {
  const { flags, context } = options;
  const { configPath } = aloneOptions(flags, context);
  const notify = createNewsFilter(options.onReport);
  while (!context.signal.aborted) {
    const before = identityOf(configPath);
    const end = await watchAgent(options, notify);
    if (end !== 'not-running') return end;
    const { readOfflineStatus } = await agentDoors.fromDisk();
    notify(await readOfflineStatus(aloneOptions(flags, context)));
    while (!context.signal.aborted && identityOf(configPath) === before) {
      await context.clock.sleep(lookEveryMs, context.signal);
    }
  }
  return 'interrupted';
}

async function watchAgent(
  { flags, context }: WatchOptions,
  notify: (report: StatusReport) => void,
): Promise<'ended' | 'interrupted' | 'not-running'> {
  let heard = false;
  try {
    await ask({
      request: { type: 'watch' },
      flags,
      context,
      onMessage: (message) => {
        if (message.type !== 'status.result') return;
        heard = true;
        notify(message);
      },
    });
    return 'ended';
  } catch (error) {
    if (context.signal.aborted) return 'interrupted';
    if (isNotRunning(error)) return 'not-running';
    // Killed: it could not say so.
    if (heard && isWritError(error) && error.facts['reason'] === 'closed') return 'ended';
    throw error;
  }
}

function createNewsFilter(onReport: WatchOptions['onReport']): (report: StatusReport) => void {
  let known: string | undefined;
  return (report) => {
    const news = statusNews(report);
    const what = news === known ? 'ages' : 'news';
    known = news;
    onReport(report, what);
  };
}

/** Every write of status.json makes a new file. */
function identityOf(configPath: string): string {
  const { status } = hostPaths(agentPlaces(configPath));
  const stat = statSync(status, { throwIfNoEntry: false });
  return stat === undefined ? 'none' : `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
}
