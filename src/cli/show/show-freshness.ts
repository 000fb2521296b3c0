// The lines of `writ status` about freshness: how old, since when, which code and which role; and a clock that is
// behind. Pure: a report in, lines out.
import type { StatusReport } from '../../core/protocol/control-protocol.js';
import type { FailedAttempts } from '../../core/status/freshness.js';
import { counted, minuteTime, roughly } from './show-text.js';

/** @returns lines as `writ status` prints them, without colour */
export function freshnessLines(report: StatusReport): string[] {
  const { freshness, clock, atMs } = report;
  const { failing, refused, expired, overdueSinceMs } = freshness;
  return [
    `  freshness ${summary(report)}`,
    ...(refused === undefined ? [] : [`            ${refusedText(refused)}`]),
    ...(expired === undefined
      ? []
      : [
          `            ${expired.role} version ${expired.version} expired ${roughly(atMs - expired.expiresAtMs)} ago, at ${minuteTime(expired.expiresAtMs)}`,
        ]),
    ...(failing === undefined || failing.code === refused?.code
      ? []
      : [`            ${failingText(failing)}`]),
    ...(overdueSinceMs === undefined
      ? []
      : [`            older than \`maxStale\` since ${minuteTime(overdueSinceMs)}`]),
    ...(clock === undefined
      ? []
      : [
          `  clock     ${roughly(clock.behindMs)} behind what was signed at ${minuteTime(clock.floorMs)}; that time is used`,
        ]),
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
