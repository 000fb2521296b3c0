// Follows the status of a host: what the running agent sends, or, when none runs, what status.json is replaced by until
// one does. Owns whom to listen to and what is news; how a report looks is show-status'.
import { statSync } from 'node:fs';
import { agentPlaces } from '../../agent/config/config-file.js';
import { hostPaths } from '../../agent/state/paths.js';
import { isWritError } from '../../core/errors.js';
import { statusNews } from '../../core/status/status-news.js';
import type { CommandContext } from '../console/command.js';
import { type ConfigFlags, connectFailureReason, sendRequest, standaloneOptions } from './agent-requests.js';
import { type KnownStatus, readKnownStatus } from './read-status.js';
import { maxStatusFileAgeMs } from './status-source-rules.js';

export interface StatusWatchOptions {
  readonly flags: ConfigFlags;
  readonly context: CommandContext;
  /** `news` is missing where only ages have grown. */
  readonly onReport: (seen: KnownStatus, what: 'news' | 'ages') => void;
}

/** How often the file is looked at when no agent runs. */
const filePollIntervalMs = 1000;

/**
 * @returns `ended` when the agent that was watched has ended, `interrupted` after a signal
 * @throws WritError as readKnownReport does
 */
export async function watchStatus(options: StatusWatchOptions): Promise<'ended' | 'interrupted'> {
  const { flags, context } = options;
  const { configPath } = standaloneOptions(flags, context);
  const notify = createChangeDetector(options.onReport);
  while (!context.signal.aborted) {
    const before = statusFileIdentity(configPath);
    const end = await watchAgent(options, notify);
    if (end !== 'not-heard') return end;
    const seen = await readKnownStatus(flags, context);
    notify(seen);
    const untilMs =
      seen.kind === 'file' ? context.clock.monotonicMs() + maxStatusFileAgeMs - seen.ageMs : Infinity;
    // What nobody writes again any more is no word to go on showing.
    const isGood = (): boolean =>
      context.clock.monotonicMs() <= untilMs && statusFileIdentity(configPath) === before;
    while (!context.signal.aborted && isGood()) {
      await context.clock.sleep(filePollIntervalMs, context.signal);
    }
  }
  return 'interrupted';
}

async function watchAgent(
  { flags, context }: StatusWatchOptions,
  notify: (seen: KnownStatus) => void,
): Promise<'ended' | 'interrupted' | 'not-heard'> {
  let heard = false;
  try {
    await sendRequest({
      request: { type: 'watch' },
      flags,
      context,
      onMessage: (message) => {
        if (message.type !== 'status.result') return;
        heard = true;
        notify({ kind: 'agent', report: message });
      },
    });
    return 'ended';
  } catch (error) {
    if (context.signal.aborted) return 'interrupted';
    if (connectFailureReason(error) !== undefined) return 'not-heard';
    // Killed: it could not say so.
    if (heard && isWritError(error) && error.facts['reason'] === 'closed') return 'ended';
    throw error;
  }
}

function createChangeDetector(onReport: StatusWatchOptions['onReport']): (seen: KnownStatus) => void {
  let known: string | undefined;
  return (seen) => {
    const news = statusNews(seen.report);
    const what = news === known ? 'ages' : 'news';
    known = news;
    onReport(seen, what);
  };
}

/** Every write of status.json makes a new file. */
function statusFileIdentity(configPath: string): string {
  const { status } = hostPaths(agentPlaces(configPath));
  const stat = statSync(status, { throwIfNoEntry: false });
  return stat === undefined ? 'none' : `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
}
