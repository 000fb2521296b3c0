// The lines that start the agent of this host, look at it and restart it: by its unit where one is installed, else as the
// program that it is. Pure: whether there is a unit is found out elsewhere.

export type UnitPresence = 'installed' | 'absent';

export const agentUnit = 'writ-agent.service';

export interface ServiceLines {
  readonly start: string;
  /** For an agent that runs and does not answer. */
  readonly look: string;
  readonly restart: string;
}

/** @returns lines of Writ without `--config`: who prints one knows which configuration it is about */
export function serviceLines(unit: UnitPresence): ServiceLines {
  if (unit === 'absent')
    return {
      start: 'writ agent',
      look: 'read the log of `writ agent` where it was started',
      restart: 'end the agent that runs, and start it again with this program',
    };
  const line = (verb: string): string => `sudo systemctl ${verb} writ-agent`;
  return { start: line('start'), look: line('status'), restart: line('restart') };
}
