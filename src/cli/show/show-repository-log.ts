// `writ repo log` for people: one line for each change, the newest first, then the online signatures, the begin of the log,
// and its limits. Pure: a log in, lines out.

import { shortKeyId } from '../../publisher/keys/signer-names.js';
import type { OnlineSummary } from '../../publisher/upkeep/log-online.js';
import type { LogProblem } from '../../publisher/upkeep/log-reading.js';
import type {
  DelegationAct,
  KeyChange,
  LogAct,
  ReleaseAct,
  RootAct,
} from '../../publisher/upkeep/log-rules.js';
import type { LogEntry, RepositoryLog } from '../../publisher/upkeep/repository-log.js';
import { counted, secondTime, table } from './show-text.js';

/** The note below every log for people. */
const limitsOfTheLog =
  'Signed by: names of keys. The metadata does not say which person used a shared key, from where, or what was tried and refused.';

/**
 * @param more how many older entries the caller left out of `log`
 * @returns the lines; without entries the first is `EMPTY`. Problems and missing versions are shown also then.
 */
export function showRepositoryLog(
  log: RepositoryLog,
  { more, repository }: { readonly more: number; readonly repository: string },
): string[] {
  const { entries, online, beginnings, missing, problems } = log;
  return [
    ...(entries.length === 0
      ? [`EMPTY ${repository} has no such act in its kept metadata`]
      : actLines(entries)),
    ...(more === 0 ? [] : [`  (${counted(more, 'older act')}; -n shows more)`]),
    ...online.map(onlineLine),
    ...beginnings.map(beginningLine),
    ...missing.map(({ role, versions }) => `  missing   ${role} ${rangesText(versions)}`),
    ...problemLines(problems, repository),
    `  ${limitsOfTheLog}`,
  ];
}

const maxRangesShown = 20;

/** @param versions ascending. @returns as `v3, v7 to v12 (6)` */
export function rangesText(versions: readonly number[]): string {
  const ranges: { readonly from: number; to: number }[] = [];
  for (const version of versions) {
    const last = ranges.at(-1);
    if (last !== undefined && version === last.to + 1) last.to = version;
    else ranges.push({ from: version, to: version });
  }
  const texts = ranges
    .slice(0, maxRangesShown)
    .map(({ from, to }) => (from === to ? `v${from}` : `v${from} to v${to} (${to - from + 1})`));
  const more = ranges.length - texts.length;
  return `${texts.join(', ')}${more === 0 ? '' : ` and ${more} more; --json lists all`}`;
}

/** Names the flag for older roots, because the log trusts only the roots after the given one. */
function beginningLine({ role, version, olderAre }: RepositoryLog['beginnings'][number]): string {
  const unread = role === 'root' ? '; --keys DIR with an older root.json shows them' : '';
  const why =
    olderAre === 'gone'
      ? 'older versions are no longer in the repository (writ repo gc)'
      : `older versions were not read${unread}`;
  return `  begins    ${role} at v${version}: ${why}`;
}

function actLines(entries: readonly LogEntry[]): string[] {
  const rows = entries.map(({ act, role, version, signedAtMs, signers, since, waiting, neverLive }) => [
    signedAtMs === undefined ? 'unknown' : secondTime(signedAtMs),
    act.kind,
    `${role} v${version}`,
    signers.map(({ name }) => name).join(', '),
    [
      actText(act),
      ...(since === undefined ? [] : [`since v${since}`]),
      ...(waiting === true ? ['not live yet'] : []),
      ...(neverLive === true ? ['never published'] : []),
    ].join('; '),
  ]);
  return table(['signed (UTC)', 'act', 'role', 'signed by', 'what'], rows);
}

function actText(act: LogAct): string {
  if ('roles' in act) return rootText(act);
  if ('team' in act) return delegationText(act);
  if ('bundle' in act) return releaseText(act);
  return act.handedOver === true ? 'the releases that were handed over' : 'the same content, a new expiry';
}

function delegationText(act: DelegationAct): string {
  const { team, change, paths = [], threshold } = act;
  const need = threshold === undefined ? '' : `${threshold} needed`;
  const keys = [keysText(act), need].filter((part) => part !== '').join(', ');
  return [`${team} ${change}`, ...paths, ...(keys === '' ? [] : [`(${keys})`])].join(' ');
}

function releaseText(act: ReleaseAct): string {
  const { bundle, channel, fromSerial, toSerial, revision = '', fixes, fromChannel, withdrawn, reason } = act;
  const serials =
    toSerial === undefined
      ? `${fromSerial} -> none`
      : fromSerial === undefined
        ? `${toSerial}`
        : `${fromSerial} -> ${toSerial}`;
  return [
    `${bundle} ${channel} ${serials}`,
    ...(revision === '' ? [] : [`(${revision})`]),
    ...(fixes === undefined ? [] : [`fixes ${fixes}`]),
    ...(fromChannel === undefined ? [] : [`from ${fromChannel}`]),
    ...(withdrawn === undefined ? [] : [`withdrew ${withdrawn.join(', ')}`]),
    ...(reason === undefined ? [] : [`because: ${reason}`]),
  ].join(' ');
}

function rootText({ roles }: RootAct): string {
  if (roles.length === 0) return 'the same keys, a new expiry';
  const parts = roles.map(({ role, threshold, thresholdBefore, ...keys }) => {
    const change = keysText(keys);
    const need =
      thresholdBefore === undefined ? `${threshold} needed` : `${thresholdBefore} -> ${threshold} needed`;
    return `${role} ${change === '' ? '' : `${change}, `}${need}`;
  });
  return parts.join('; ');
}

/** Includes key ids, because a key can have the name of the key that it replaces. */
function keysText({ addedKeys, addedKeyIds, removedKeys, removedKeyIds }: KeyChange): string {
  const texts = (sign: string, names: readonly string[], ids: readonly string[]): string[] =>
    ids.map((id, index) => {
      const name = names[index] ?? '';
      return name === shortKeyId(id) ? `${sign}${name}` : `${sign}${name} ${shortKeyId(id)}`;
    });
  return [...texts('+', addedKeys, addedKeyIds), ...texts('-', removedKeys, removedKeyIds)].join(' ');
}

function onlineLine({
  role,
  firstVersion,
  lastVersion,
  verified,
  lastSignedAtMs,
  signers,
}: OnlineSummary): string {
  const versions = firstVersion === lastVersion ? `v${lastVersion}` : `v${firstVersion} to v${lastVersion}`;
  const kept = role === 'timestamp' ? 'only the newest is kept' : `${verified} kept`;
  const last = lastSignedAtMs === undefined ? '' : `, last ${secondTime(lastSignedAtMs)}`;
  return `  ${role.padEnd(9)} ${versions} (${kept}${last}) by ${signers.map(({ name }) => name).join(', ')}`;
}

const maxProblemsShown = 20;

function problemLines(problems: readonly LogProblem[], repository: string): string[] {
  if (problems.length === 0) return [];
  const left = problems.length - maxProblemsShown;
  return [
    `DAMAGED ${repository}: ${counted(problems.length, 'file')} of metadata cannot be verified, and no act of it is shown`,
    ...problems
      .slice(0, maxProblemsShown)
      .map(({ code, where, message }) => `  ${code}  ${where}: ${message}`),
    ...(left > 0 ? [`  (${counted(left, 'more')})`] : []),
  ];
}
