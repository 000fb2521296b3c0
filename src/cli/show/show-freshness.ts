// The lines of `writ status` about freshness: the age, the begin, the code and the role of a problem; and a clock that is
// behind. Pure: a report in, lines out.
import type { BundleStatus, StatusReport } from '../../core/protocol/control-protocol.js';
import type { FailedAttempts } from '../../core/status/freshness.js';
import { counted, lineOf, minuteTime, roughly } from './show-text.js';

/** @returns lines as `writ status` prints them, without colour */
export function freshnessLines(report: StatusReport): string[] {
  const { freshness, clock, atMs, bundles } = report;
  const { failing, refused, expired, overdueSinceMs } = freshness;
  return [
    `  freshness ${summary(report)}`,
    ...lineOf(refused, ({ times, sinceMs, ...last }) => {
      const often = `${counted(times, 'time')} since ${minuteTime(sinceMs)}`;
      return `            metadata was REFUSED ${often}, last with ${named(last)}`;
    }),
    ...lineOf(expired, ({ role, version, expiresAtMs: at }) => {
      return `            ${role} version ${version} expired ${roughly(atMs - at)} ago, at ${minuteTime(at)}`;
    }),
    ...lineOf(failing?.code === refused?.code ? undefined : failing, ({ times, sinceMs, ...last }) => {
      const failed = `${counted(times, 'attempt')} failed since ${minuteTime(sinceMs)}`;
      return `            ${failed}, the last with ${named(last)}`;
    }),
    ...lineOf(overdueSinceMs, (since) => `            older than \`maxStale\` since ${minuteTime(since)}`),
    ...bundles.flatMap(missedLines),
    ...lineOf(clock, ({ behindMs, floorMs }) => {
      const signed = minuteTime(floorMs);
      return `  clock     ${roughly(behindMs)} behind a signature of ${signed}; that time is used`;
    }),
  ];
}

/** A late release has a problem with the same facts and a hint, so only a waiting one is printed here. */
function missedLines({ bundle, missed }: BundleStatus): string[] {
  if (missed === undefined || missed.state !== 'waiting') return [];
  const { serial, sinceMs, code, url = '' } = missed;
  const what = serial === undefined ? bundle : `${bundle} ${serial}`;
  const last = code === undefined ? '' : `: [${code}] ${url}`.trimEnd();
  return [`  release   ${what} not active, offered since ${minuteTime(sinceMs)}${last}`];
}

function summary(report: StatusReport): string {
  const { state, lastContactAtMs, sinceMs } = report.freshness;
  // The first pull without an agent records its contact only at its end.
  const never = report.downloading === undefined ? 'server not reached yet' : 'server reached now';
  const since = sinceMs === undefined ? '' : ` since ${minuteTime(sinceMs)}`;
  const contact =
    lastContactAtMs === undefined ? never : `server reached ${roughly(report.atMs - lastContactAtMs)} ago`;
  // A stopped agent does not poll.
  const nextPollAtMs = report.agent === 'stop' ? undefined : report.nextPollAtMs;
  const poll = lineOf(nextPollAtMs, (at) => `next poll in ${roughly(at - report.atMs)}`);
  return `${state}${since}: ${[contact, ...ageText(report), ...poll].join(', ')}`;
}

/** Omitted for fresh metadata, because the time of the contact is the same. */
function ageText({ freshness }: StatusReport): string[] {
  const { state, ageMs } = freshness;
  if (state === 'fresh') return [];
  return [ageMs === undefined ? 'never proven current' : `last proven current ${roughly(ageMs)} ago`];
}

function named({ code, role }: Pick<FailedAttempts, 'code' | 'role'>): string {
  return role === undefined ? `[${code}]` : `[${code}] (${role})`;
}
