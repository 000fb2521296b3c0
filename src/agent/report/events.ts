// The events of a host, with stable names (docs/events.md): derived from the end of a cycle and from the difference of two status
// reports; one line of JSON for each event, times as ISO 8601. The observer appends them to a file of bounded size. A disk failure
// changes no outcome: lost events are counted, and the next line reports their number.
import * as fs from 'node:fs';
import type { BundleResult, CycleResult } from '../../core/cycle/cycle-report.js';
import type { AgentState, StatusReport, WorkerStatus } from '../../core/status/status.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import type { AgentObserver } from './observer.js';

/** Names are stable: a name never changes its meaning, and new ones may be added. */
export const eventNames = [
  'agent.state',
  'cycle.ended',
  'events.dropped',
  'freshness.fresh',
  'freshness.frozen',
  'freshness.refused',
  'freshness.stale',
  'policy.activated',
  'policy.blocked',
  'policy.damaged',
  'policy.paused',
  'policy.repaired',
  'policy.resumed',
  'policy.rolled-back',
  'policy.unblocked',
  'problem.ended',
  'problem.raised',
  'release.held',
  'release.refused',
  'release.released',
  'release.settled',
  'trust.changed',
  'worker.gone',
  'worker.notified',
  'worker.pending',
] as const;

export type EventName = (typeof eventNames)[number];

/** Name and own members of an event; `eventLines` adds host and time. */
export interface HostEvent {
  readonly event: EventName;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Most events of one cycle or one change; the others are counted. */
export const maxEventsAtOnce = 1000;
const maxTextCharacters = 500;

/** @returns the events of a finished cycle, rollback, repair or recovery, with `cycle.ended` first */
export function eventsOfCycle(result: CycleResult): HostEvent[] {
  const { cycle, trigger, outcome, exitCode, confirmed, changed, durationMs, bundles } = result;
  const { fromGeneration, generation, problems } = result;
  const moved = compact({ cycle, fromGeneration, generation });
  const code = problems[0]?.code;
  const ended = { trigger, outcome, exitCode, confirmed, changed, ...moved, durationMs, code };
  const parts = bundles.map(({ bundle, channel, outcome: own, fromSerial, toSerial, revision, problem }) =>
    compact({ bundle, channel, outcome: own, fromSerial, toSerial, revision, code: problem?.code }),
  );
  return [
    event('cycle.ended', { ...ended, bundles: parts }),
    ...(changed && generation !== undefined ? [event('policy.activated', { ...moved, confirmed })] : []),
    ...(outcome === 'rolled-back' ? [event('policy.rolled-back', { ...moved, code })] : []),
    ...refusedEvents(result),
  ];
}

/** @returns the bundles with a new refusal, without those that are skipped for a remembered one */
export function newRefusals({ bundles }: CycleResult): BundleResult[] {
  return bundles.filter(
    ({ outcome, remembered }) => (outcome === 'rejected' || outcome === 'rolled-back') && remembered !== true,
  );
}

function refusedEvents(result: CycleResult): HostEvent[] {
  const { cycle } = result;
  return newRefusals(result).map(({ bundle, channel, toSerial: serial, problem, retryAtMs }) => {
    const { code, message } = problem ?? {};
    const retryAt = isoTime(retryAtMs);
    return event('release.refused', { cycle, bundle, channel, serial, code, message, retryAt });
  });
}

/** @returns the event of a new state of the agent process */
export function eventOfState(state: AgentState, version: string): HostEvent {
  return event('agent.state', { state, version });
}

/** @returns the events of the difference between two reports, without those that the end of a cycle causes */
export function eventsOfChange(before: StatusReport, after: StatusReport): HostEvent[] {
  return [freshness, trust, scans, problems, pauses, holds, bakes, workers].flatMap((part) =>
    part(before, after),
  );
}

function freshness(before: StatusReport, after: StatusReport): HostEvent[] {
  const { state, failing, refused, expired } = after.freshness;
  if (state === before.freshness.state) return [];
  const attempt = refused ?? failing;
  const role = expired?.role ?? attempt?.role;
  const why = state === 'fresh' ? {} : { code: attempt?.code, role };
  return [event(`freshness.${state}`, { from: before.freshness.state, ...why })];
}

function trust(before: StatusReport, after: StatusReport): HostEvent[] {
  return after.trust.flatMap(({ role, version, expiresAtMs }) => {
    const known = before.trust.find((one) => one.role === role)?.version;
    if (known === version) return [];
    return event('trust.changed', { role, fromVersion: known, version, expiresAt: isoTime(expiresAtMs) });
  });
}

function scans(before: StatusReport, { scrub }: StatusReport): HostEvent[] {
  if (scrub === undefined || scrub.outcome === 'intact' || scrub.atMs === before.scrub?.atMs) return [];
  return [event(`policy.${scrub.outcome}`, { found: scrub.found })];
}

function problems(before: StatusReport, after: StatusReport): HostEvent[] {
  const codesOf = (report: StatusReport): Set<string> => new Set(report.problems.map((one) => one.code));
  const [known, now] = [codesOf(before), codesOf(after)];
  const raised = [...now].filter((code) => !known.has(code));
  const ended = [...known].filter((code) => !now.has(code));
  return [
    ...raised.flatMap((code) => {
      const { message = '', hint = '' } = after.problems.find((one) => one.code === code) ?? {};
      const also = code === blockedCode ? [event('policy.blocked', { message })] : [];
      return [event('problem.raised', { code, message, hint }), ...also];
    }),
    ...ended.flatMap((code) => [
      event('problem.ended', { code }),
      ...(code === blockedCode ? [event('policy.unblocked', {})] : []),
    ]),
  ];
}

const blockedCode = 'ACTIVATION_BLOCKED';

function pauses({ pause: before }: StatusReport, { pause }: StatusReport): HostEvent[] {
  if (before?.atMs === pause?.atMs) return [];
  if (pause === undefined) return [event('policy.resumed', {})];
  const { by, reason, untilMs } = pause;
  return [event('policy.paused', { by, reason, until: isoTime(untilMs) })];
}

function holds(before: StatusReport, after: StatusReport): HostEvent[] {
  const without = (report: StatusReport, other: StatusReport): StatusReport['holds'] =>
    report.holds.filter(
      (one) => !other.holds.some(({ bundle, serial }) => bundle === one.bundle && serial === one.serial),
    );
  return [
    ...without(after, before).map(({ bundle, serial, by, reason }) =>
      event('release.held', { bundle, serial, by, reason }),
    ),
    ...without(before, after).map(({ bundle, serial }) => event('release.released', { bundle, serial })),
  ];
}

/** A release that settled before and became active again causes no event. */
function bakes(before: StatusReport, after: StatusReport): HostEvent[] {
  return after.bundles.flatMap(({ bundle, channel, serial, bake }) => {
    const old = before.bundles.find((one) => one.bundle === bundle && one.serial === serial);
    if (bake?.state !== 'settled' || old?.bake === undefined || old.bake.state === 'settled') return [];
    return event('release.settled', { bundle, channel, serial, observed: bake.observed });
  });
}

function workers(before: StatusReport, after: StatusReport): HostEvent[] {
  const key = ({ group, worker }: WorkerStatus): string => `${group}/${worker}`;
  const known = new Map(before.workers.map((one) => [key(one), one]));
  const now = new Set(after.workers.map(key));
  const notified = after.workers.flatMap((one) => {
    const old = known.get(key(one));
    if (old !== undefined && isSame(old, one)) return [];
    const { group, worker, state, wanted, confirmed, text } = one;
    if (state === 'pending') return event('worker.pending', { group, worker, wanted, confirmed });
    return event('worker.notified', { group, worker, state, wanted, confirmed, text });
  });
  const gone = before.workers.filter((one) => !now.has(key(one)));
  return [...notified, ...gone.map(({ group, worker }) => event('worker.gone', { group, worker }))];
}

function isSame(one: WorkerStatus, other: WorkerStatus): boolean {
  return one.state === other.state && one.wanted === other.wanted && one.confirmed === other.confirmed;
}

function event(name: EventName, fields: Readonly<Record<string, unknown>>): HostEvent {
  return { event: name, fields: compact(fields) };
}

/** Drops undefined members, and truncates texts. */
function compact(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, typeof value === 'string' ? value.slice(0, maxTextCharacters) : value]),
  );
}

function isoTime(atMs: number | undefined): string | undefined {
  return atMs === undefined ? undefined : new Date(atMs).toISOString();
}

/** @returns lines of JSON, each with a line feed: at most `maxEventsAtOnce`, then a count of the others */
export function eventLines(
  events: readonly HostEvent[],
  where: { readonly host: string; readonly atMs: number; readonly dropped?: number },
): string {
  const { host, atMs } = where;
  const kept = events.slice(0, maxEventsAtOnce);
  const dropped = events.length - kept.length + (where.dropped ?? 0);
  const all = dropped === 0 ? kept : [...kept, event('events.dropped', { count: dropped })];
  return all
    .map(
      ({ event: name, fields }) =>
        `${JSON.stringify({ schema: 1, type: 'event', event: name, time: isoTime(atMs), host, ...fields })}\n`,
    )
    .join('');
}

export interface EventsFileOptions {
  readonly path: string;
  readonly host: string;
  readonly version: string;
  readonly durable: DurableFs;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly log: Logger;
}

export const maxEventsBytes = 10_000_000;

/**
 * @returns an observer that appends events to the file; the first report causes no event. It never throws: a failed write is
 *   logged once, and the next write has the count of the lost events
 */
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
      // Logged once per series of failures, because a full disk would fill the log too.
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
      // The state before this process is unknown, so the first report causes no event.
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
