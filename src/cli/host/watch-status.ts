// Follows the status of a host: the messages of the running agent, or the replacements of status.json until an agent runs.
// Detects changes; show-status formats a report.
import { statSync } from 'node:fs';
import { agentPlaces } from '../../agent/config/config-file.js';
import { hostPaths } from '../../agent/state/paths.js';
import { isWritError } from '../../core/errors.js';
import { fingerprintStatus } from '../../core/status/status-fingerprint.js';
import type { CommandContext } from '../console/command.js';
import { type ConfigFlags, connectFailureReason, sendRequest, standaloneOptions } from './agent-requests.js';
import { type KnownStatus, readKnownStatus } from './read-status.js';
import { maxStatusFileAgeMs } from './status-source-rules.js';

export interface StatusWatchOptions {
  readonly flags: ConfigFlags;
  readonly context: CommandContext;
  /** `hasChanged`: false if only ages and times differ from the status before. */
  readonly onStatus: (status: KnownStatus, hasChanged: boolean) => void;
}

/** Between two checks of the file when no agent runs. */
const filePollIntervalMs = 1000;

/**
 * @returns `ended` when the watched agent has ended, `interrupted` after a signal
 * @throws WritError of an agent that does not answer; CONFIG_*; STATE_DAMAGED; the reason of an unknown status without a report
 */
export async function watchStatus(options: StatusWatchOptions): Promise<'ended' | 'interrupted'> {
  const { flags, context } = options;
  const { configPath } = standaloneOptions(flags, context);
  const onStatus = createChangeDetector(options.onStatus);
  while (!context.signal.aborted) {
    const before = statusFileIdentity(configPath);
    const end = await watchAgent(options, onStatus);
    if (end !== 'no-connection') return end;
    const status = await readKnownStatus(flags, context);
    onStatus(status);
    const untilMs =
      status.kind === 'file' ? context.clock.monotonicMs() + maxStatusFileAgeMs - status.ageMs : Infinity;
    // A status.json that no agent replaces becomes too old to be shown.
    const isCurrent = (): boolean =>
      context.clock.monotonicMs() <= untilMs && statusFileIdentity(configPath) === before;
    while (!context.signal.aborted && isCurrent()) {
      await context.clock.sleep(filePollIntervalMs, context.signal);
    }
  }
  return 'interrupted';
}

async function watchAgent(
  { flags, context }: StatusWatchOptions,
  onStatus: (status: KnownStatus) => void,
): Promise<'ended' | 'interrupted' | 'no-connection'> {
  let hasReceived = false;
  try {
    await sendRequest({
      request: { type: 'watch' },
      flags,
      context,
      onMessage: (message) => {
        if (message.type !== 'status.result') return;
        hasReceived = true;
        onStatus({ kind: 'agent', report: message });
      },
    });
    return 'ended';
  } catch (error) {
    if (context.signal.aborted) return 'interrupted';
    if (connectFailureReason(error) !== undefined) return 'no-connection';
    // A killed agent closes the connection without a message.
    if (hasReceived && isWritError(error) && error.facts['reason'] === 'closed') return 'ended';
    throw error;
  }
}

function createChangeDetector(onStatus: StatusWatchOptions['onStatus']): (status: KnownStatus) => void {
  let shown: string | undefined;
  return (status) => {
    const content = fingerprintStatus(status.report);
    const hasChanged = content !== shown;
    shown = content;
    onStatus(status, hasChanged);
  };
}

/** @returns a text that differs after each write of status.json, because each write makes a new file */
function statusFileIdentity(configPath: string): string {
  const { status } = hostPaths(agentPlaces(configPath));
  const stat = statSync(status, { throwIfNoEntry: false });
  return stat === undefined ? 'none' : `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
}
