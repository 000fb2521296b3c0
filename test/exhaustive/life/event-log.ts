// The record of a simulation: counts by kind, the last events, and the violations of rules.

export interface EventLog {
  event(text: string): void;
  count(name: string, by?: number): void;
  counted(name: string): number;
  /** Records a violation of a rule, with the events before it. */
  violate(text: string): void;
  readonly violations: readonly string[];
  readonly lastEvents: readonly string[];
  counts(): ReadonlyMap<string, number>;
}

const keptEvents = 40;
const maxTextCharacters = 1500;

/** @param hours virtual hours so far */
export function eventLog(hours: () => number): EventLog {
  const counts = new Map<string, number>();
  const lastEvents: string[] = [];
  const violations: string[] = [];
  const event = (text: string): void => {
    lastEvents.push(`${hours().toFixed(3)} h ${text.slice(0, maxTextCharacters)}`);
    if (lastEvents.length > keptEvents) lastEvents.shift();
  };
  return {
    event,
    count: (name, by = 1) => void counts.set(name, (counts.get(name) ?? 0) + by),
    counted: (name) => counts.get(name) ?? 0,
    violate: (text) => {
      event(`VIOLATION ${text}`);
      violations.push([text, ...lastEvents.slice(-12)].join('\n    ').slice(0, 8000));
    },
    violations,
    lastEvents,
    counts: () => counts,
  };
}
