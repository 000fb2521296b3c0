// The commands that start, inspect and restart the agent of this host: with its systemd unit if that is installed, otherwise
// with the program itself. The caller finds out whether the unit is installed.

export type UnitPresence = 'installed' | 'absent';

export const agentUnit = 'writ-agent.service';

export interface ServiceCommands {
  readonly start: string;
  /** For an agent that runs and does not respond. */
  readonly inspect: string;
  readonly restart: string;
}

/** @returns the commands without `--config`, because the caller that prints them knows the configuration */
export function chooseServiceCommands(unit: UnitPresence): ServiceCommands {
  if (unit === 'absent')
    return {
      start: 'writ agent',
      inspect: 'read the log of `writ agent` where it was started',
      restart: 'end the agent that runs, and start it again with this program',
    };
  const command = (verb: string): string => `sudo systemctl ${verb} writ-agent`;
  return { start: command('start'), inspect: command('status'), restart: command('restart') };
}
