// The lines of `writ status` about freshness: how old, since when, which code and which role; and a clock that is
// behind. Pure: a report in, lines out.
import type { StatusReport } from '../../core/protocol/control-protocol.js';
import type { FailedAttempts } from '../../core/status/freshness.js';
import { counted, lineOf, minuteTime, roughly } from './show-text.js';

/** @returns lines as `writ status` prints them, without colour */
export function freshnessLines(report: StatusReport): string[] {
  const { freshness, clock, atMs } = report;
  const { failing, refused, expired, overdueSinceMs } = freshness;
  return [
    `  freshness ${summary(report)}`,
    ...lineOf(refused, (it) => `            ${refusedText(it)}`),
    ...lineOf(expired, ({ role, version, expiresAtMs: at }) => {
      return `            ${role} version ${version} expired ${roughly(atMs - at)} ago, at ${minuteTime(at)}`;
    }),
    ...lineOf(
      failing?.code === refused?.code ? undefined : failing,
      (it) => `            ${failingText(it)}`,
    ),
    ...lineOf(overdueSinceMs, (since) => `            older than \`maxStale\` since ${minuteTime(since)}`),
    ...lineOf(clock, ({ behindMs, floorMs }) => {
      const signed = minuteTime(floorMs);
      return `  clock     ${roughly(behindMs)} behind what was signed at ${signed}; that time is used`;
    }),
  ];
}

function summary(report: StatusReport): string {
  const { state, lastContactMs, sinceMs } = report.freshness;
  const since = sinceMs === undefined ? '' : ` since ${minuteTime(sinceMs)}`;
  const contact =
    lastContactMs === undefined
      ? 'server not reached yet'
      : `server reached ${roughly(report.atMs - lastContactMs)} ago`;
  return `${state}${since}: ${[contact, ...ageText(report), ...pollText(report)].join(', ')}`;
}

/** Only where it says more than the contact does. */
function ageText({ freshness }: StatusReport): string[] {
  const { state, ageMs } = freshness;
  if (state === 'fresh') return [];
  return [ageMs === undefined ? 'never proven current' : `last proven current ${roughly(ageMs)} ago`];
}

function pollText({ nextPollAtMs, atMs }: StatusReport): string[] {
  return nextPollAtMs === undefined ? [] : [`next poll in ${roughly(nextPollAtMs - atMs)}`];
}

function refusedText({ code, role, sinceMs, times }: FailedAttempts): string {
  return `metadata was REFUSED ${counted(times, 'time')} since ${minuteTime(sinceMs)}, last with ${named(code, role)}`;
}

function failingText({ code, role, sinceMs, times }: FailedAttempts): string {
  return `${counted(times, 'attempt')} failed since ${minuteTime(sinceMs)}, the last with ${named(code, role)}`;
}

function named(code: string, role: string | undefined): string {
  return role === undefined ? `[${code}]` : `[${code}] (${role})`;
}
