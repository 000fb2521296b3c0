// Appends what happens on this host to a file, one line of JSON an event (docs/events.md). An observer; owns the file and its
// bound. A disk that fails changes no outcome: what could not be written is counted and said by the next line.
import * as fs from 'node:fs';
import type { StatusReport } from '../../core/protocol/control-protocol.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { eventLines, eventOfState, eventsOfChange, eventsOfCycle, type HostEvent } from './event-rules.js';
import type { AgentObserver } from './observer.js';

export interface EventsFileOptions {
  readonly path: string;
  readonly host: string;
  readonly version: string;
  readonly durable: DurableFs;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly log: Logger;
}

export const maxEventsBytes = 10_000_000;

/** @returns the observer that writes; it never throws */
export function createEventsFile(options: EventsFileOptions): AgentObserver {
  let known: StatusReport | undefined;
  let dropped = 0;
  const write = (events: readonly HostEvent[]): void => {
    if (events.length === 0) return;
    const lines = eventLines(events, { host: options.host, atMs: options.clock.nowMs(), dropped });
    try {
      append(options, lines);
      dropped = 0;
    } catch (error) {
      // Said once: a full disk would fill the log too.
      if (dropped === 0) options.log.error({ err: error }, 'events could not be written');
      dropped += events.length;
    }
  };
  return {
    onState: (state) => write([eventOfState(state, options.version)]),
    onCycle: ({ result }) => write(eventsOfCycle(result)),
    onStatus: (report) => {
      const before = known;
      known = report;
      // What was before this process is not known: the first report is where changes begin.
      if (before !== undefined) write(eventsOfChange(before, report));
    },
  };
}

function append({ path, durable }: EventsFileOptions, lines: string): void {
  const size = fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const isFull = size > 0 && size + Buffer.byteLength(lines) > maxEventsBytes;
  if (isFull) durable.rename('events.rotate', path, `${path}.1`);
  durable.appendFile('events.append', path, lines, 0o600);
}
